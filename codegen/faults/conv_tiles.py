"""Tile sizes of convolutions of dynamic width, for which IREE chooses tiny ones.

IREE tiles the loops of a convolution by its sizes. Of one of dynamic width it computes one pixel
and an eighth of the output channels at a time, which is five times slower than need be. So larger
tiles replace IREE's once it has chosen them. Tiles do not change the result; the ends of rows that
do not fill a tile get peeled loops.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from iree.compiler.ir import Attribute, Operation, RankedTensorType

from ..emission import DYNAMIC
from ..linalg import iterator_kinds, operations_in

_PIPELINE = "#iree_cpu.pipeline<ConvTileAndDecomposeExpert>>"
_PEELED = "#iree_cpu.pipeline<ConvTileAndDecomposeExpert>, {enable_loop_peeling}>"
_TILES = re.compile(r"(\w+) = \[([\d, ]*)\]")

_PIXELS = 4
"""Neighbouring pixels of a row in a vector tile: more would spill registers."""

_MIN_CHANNELS = 16
"""Output channels of the smallest vector tile that is faster than IREE's."""

_MAX_DEPTH = 16
"""The most input channels in a vector tile."""

_ROWS, _COLUMNS = 8, 64
"""Pixels of one workgroup."""


def override_conv_lowering_config(module_op: Operation, channels: int) -> None:
    """Override the tile sizes of the convolutions of dynamic width.

    Args:
        module_op: A module at the end of the phase `executable-configurations`; changed in place.
        channels: The most output channels of a tile, from `output_channel_tile`.
    """
    for function in conv_functions(module_op):
        _override(function, channels)


def conv_functions(module_op: Operation) -> list[Operation]:
    """Return the functions that IREE lowers by its pipeline for convolutions."""
    return [
        function
        for function in operations_in(module_op, "func.func")
        if "translation_info" in function.attributes
        and _PIPELINE in str(function.attributes["translation_info"])
    ]


@dataclass(frozen=True)
class _Tiled:
    """An operation with a lowering config, and its tile sizes by level."""

    op: Operation
    tiles: dict[str, list[int]]

    @property
    def parallel(self) -> list[int]:
        """The vector tile of the four parallel loops."""
        return self.tiles["vector_common_parallel"][:4]

    def override(self, **tiles: list[int]) -> None:
        """Set the tile sizes, by level."""
        stated = ", ".join(f"{level} = {sizes}" for level, sizes in tiles.items())
        self.op.attributes["lowering_config"] = Attribute.parse(
            f"#iree_cpu.lowering_config<{stated}>", self.op.context
        )


def _tiled_operations(function: Operation) -> list[_Tiled]:
    found: list[_Tiled] = []
    for op in operations_in(function):
        if "lowering_config" in op.attributes:
            levels = _TILES.findall(str(op.attributes["lowering_config"]))
            tiles = {level: [int(n) for n in sizes.split(",")] for level, sizes in levels}
            found.append(_Tiled(op, tiles))
    return found


def _override(function: Operation, channels: int) -> None:
    """Override the tile sizes of a function that is a convolution of dynamic width."""
    tiled = _tiled_operations(function)
    roots = [each for each in tiled if "vector_reduction" in each.tiles]
    if len(roots) != 1:
        return
    (root,) = roots
    sizes = _channels_of_dynamic_conv(root.op)
    if sizes is None or any(each.parallel != root.parallel for each in tiled):
        return
    outputs, depth = sizes
    tile = [1, 1, _PIXELS, channel_tile(outputs, channels)]
    for each in tiled:
        each.override(vector_common_parallel=tile)
    root.override(
        distribution=[0, _ROWS, _COLUMNS, channels if outputs % channels == 0 else 0, 0, 0, 0],
        vector_common_parallel=[*tile, 0, 0, 0],
        vector_reduction=[0, 0, 0, 0, 1, 1, min(depth, _MAX_DEPTH)],
    )
    peeled = str(function.attributes["translation_info"]).replace(_PIPELINE, _PEELED)
    function.attributes["translation_info"] = Attribute.parse(peeled, function.context)


def _channels_of_dynamic_conv(op: Operation) -> tuple[int, int] | None:
    """Return the output and input channels of a channels-last float32 convolution of dynamic width.

    Its loops are batch, row, column, output channel, kernel row, kernel column, input channel.
    None for any other operation.
    """
    loops = iterator_kinds(op)
    counts = loops.count("parallel"), loops.count("reduction")
    if op.name != "linalg.generic" or counts != (4, 3):
        return None
    types = [RankedTensorType(value.type) for value in op.operands]
    if [each.rank for each in types] != [4, 4, 4]:
        return None
    if any(str(each.element_type) != "f32" for each in types):
        return None
    _, kernel, result = (list(each.shape) for each in types)
    if DYNAMIC in kernel or result[2] != DYNAMIC or result[3] != kernel[3]:
        return None
    return kernel[3], kernel[2]


def channel_tile(outputs: int, limit: int) -> int:
    """Return the output channels of a vector tile.

    Args:
        outputs: The output channels of the convolution.
        limit: The most that the registers hold, a power of two.

    Returns:
        The largest power of two up to the limit that divides `outputs`, if that is not too small;
        else one after which the last tile is partial. Few channels make one tile.

    Example:
        >>> channel_tile(96, 64), channel_tile(100, 64), channel_tile(7, 64)
        (32, 32, 7)
    """
    common = math.gcd(outputs, limit)
    if outputs < _MIN_CHANNELS:
        return outputs
    if common >= _MIN_CHANNELS:
        return common
    return min(limit, 2 * _MIN_CHANNELS if outputs > 2 * _MIN_CHANNELS else _MIN_CHANNELS)
