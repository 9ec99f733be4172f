"""Larger tiles for convolutions whose width is dynamic.

IREE cuts the loops of a convolution into tiles by its sizes. Of one whose width it does not know it
computes one place and an eighth of the channels at a time, five times slower than it could be. So
better ones take their place once IREE has chosen its own. Tiles do not change what is computed. The
ends of rows, which do not fill a tile, get loops of their own (IREE's peeling).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from iree.compiler.ir import (
    Attribute,
    Operation,
    RankedTensorType,
    ShapedType,
    WalkResult,
)

_PIPELINE = "#iree_cpu.pipeline<ConvTileAndDecomposeExpert>>"
_PEELED = "#iree_cpu.pipeline<ConvTileAndDecomposeExpert>, {enable_loop_peeling}>"
_TILES = re.compile(r"(\w+) = \[([\d, ]*)\]")

_PLACES = 4
"""Neighbours of a row in a tile: more of them leave no registers."""

_FEWEST = 16
"""Output channels of the smallest tile that is worth it."""

_DEPTH = 16
"""The most input channels in a tile."""

_ROWS, _COLUMNS = 8, 64
"""Places of a piece of work for one thread."""


def enlarge_tiles(module_op: Operation, channels: int) -> None:
    """Give a program's convolutions of dynamic width larger tiles.

    Args:
        module_op: A module at the end of the phase `executable-configurations`; changed in place.
        channels: The most output channels of a tile, from `channels_of_tile`.
    """
    for function in _functions(module_op):
        _enlarge(function, channels)


def _functions(module_op: Operation) -> list[Operation]:
    """Return the functions that IREE compiles as convolutions."""
    found: list[Operation] = []

    def visit(op: Operation) -> WalkResult:
        if op.name == "func.func" and "translation_info" in op.attributes:
            if _PIPELINE in str(op.attributes["translation_info"]):
                found.append(op)
            return WalkResult.SKIP
        return WalkResult.ADVANCE

    module_op.walk(visit)
    return found


@dataclass(frozen=True)
class _Tiled:
    """An operation with its tiles: `parallel` are those of its parallel loops."""

    op: Operation
    tiles: dict[str, list[int]]

    @property
    def parallel(self) -> list[int]:
        return self.tiles["vector_common_parallel"][:4]

    def exchange(self, **tiles: list[int]) -> None:
        stated = ", ".join(f"{kind} = {numbers}" for kind, numbers in tiles.items())
        self.op.attributes["lowering_config"] = Attribute.parse(
            f"#iree_cpu.lowering_config<{stated}>", self.op.context
        )


def _tiled_operations(function: Operation) -> list[_Tiled]:
    found: list[_Tiled] = []

    def visit(op: Operation) -> WalkResult:
        if "lowering_config" in op.attributes:
            text = str(op.attributes["lowering_config"])
            tiles = {
                kind: [int(n) for n in listed.split(",")] for kind, listed in _TILES.findall(text)
            }
            found.append(_Tiled(op, tiles))
        return WalkResult.ADVANCE

    function.walk(visit)
    return found


def _enlarge(function: Operation, channels: int) -> None:
    """Exchange the tiles of a function where it is a convolution that needs it."""
    tiled = _tiled_operations(function)
    roots = [each for each in tiled if "vector_reduction" in each.tiles]
    if len(roots) != 1:
        return
    (root,) = roots
    sizes = _sizes(root.op)
    if sizes is None or any(each.parallel != root.parallel for each in tiled):
        return
    outputs, depth = sizes
    tile = [1, 1, _PLACES, _channels(outputs, channels)]
    for each in tiled:
        each.exchange(vector_common_parallel=tile)
    root.exchange(
        distribution=[0, _ROWS, _COLUMNS, channels if outputs % channels == 0 else 0, 0, 0, 0],
        vector_common_parallel=[*tile, 0, 0, 0],
        vector_reduction=[0, 0, 0, 0, 1, 1, min(depth, _DEPTH)],
    )
    peeled = str(function.attributes["translation_info"]).replace(_PIPELINE, _PEELED)
    function.attributes["translation_info"] = Attribute.parse(peeled, function.context)


def _sizes(op: Operation) -> tuple[int, int] | None:
    """Return the output and input channels of a channels-last convolution of dynamic width.

    Its loops are batch, row, column, output channel, kernel's row and column, input channel.
    None: it is something else.
    """
    loops = str(op.attributes["iterator_types"]) if "iterator_types" in op.attributes else ""
    if op.name != "linalg.generic" or loops.count("parallel") != 4 or loops.count("reduction") != 3:
        return None
    types = [RankedTensorType(value.type) for value in op.operands]
    if [each.rank for each in types] != [4, 4, 4]:
        return None
    if any(str(each.element_type) != "f32" for each in types):
        return None
    _, kernel, result = (list(each.shape) for each in types)
    unknown = ShapedType.get_dynamic_size()
    if unknown in kernel or result[2] != unknown or result[3] != kernel[3]:
        return None
    return kernel[3], kernel[2]


def _channels(outputs: int, most: int) -> int:
    """Return the output channels of a tile: a power of two, without a remainder where that fits.

    Else the last tile is smaller. Few channels are one tile.
    """
    common = math.gcd(outputs, most)
    if outputs < _FEWEST:
        return outputs
    if common >= _FEWEST:
        return common
    return min(most, 2 * _FEWEST if outputs > 2 * _FEWEST else _FEWEST)
