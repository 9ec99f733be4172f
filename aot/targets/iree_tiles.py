"""Larger tiles for convolutions whose width is dynamic.

IREE cuts the loops of a convolution into tiles by its sizes. Of one whose width it does not know it
computes one place and an eighth of the channels at a time, five times slower than it could be. So
such a program is compiled twice: until IREE has chosen its tiles, and, with better ones in their
place, to the end. Tiles do not change what is computed. The ends of rows, which do not fill a
tile, get loops of their own (IREE's peeling).
"""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from iree.compiler.ir import (
    Attribute,
    Context,
    Module,
    Operation,
    RankedTensorType,
    ShapedType,
    WalkResult,
)

from .iree_compiler import CompilerFailed, compile_file_isolated

_CONVOLUTIONS = frozenset(
    f"torch.aten.{name}"
    for name in ("conv2d", "conv2d.padding", "convolution", "conv_transpose2d.input")
)
_PIPELINE = "#iree_cpu.pipeline<ConvTileAndDecomposeExpert>>"
_PEELED = "#iree_cpu.pipeline<ConvTileAndDecomposeExpert>, {enable_loop_peeling}>"
_DATA_OUTSIDE = "--iree-flow-inline-constants-max-byte-length=0"
"""An executable with data in it cannot be exchanged: the data would be missing."""

_UNTIL_TILES = ("--compile-to=executable-configurations", "--emit-mlir-bytecode")

_CONFIGURED = "configured_"
"""What IREE puts before the name of a file with an executable whose tiles are chosen."""

_TILES = re.compile(r"(\w+) = \[([\d, ]*)\]")

_PLACES = 4
"""Neighbours of a row in a tile: more of them leave no registers."""

_FEWEST = 16
"""Output channels of the smallest tile that is worth it."""

_DEPTH = 16
"""The most input channels in a tile."""

_ROWS, _COLUMNS = 8, 64
"""Places of a piece of work for one thread."""


def has_dynamic_convolutions(module_op: Operation) -> bool:
    """Tell whether a module convolves images whose width or height is dynamic.

    Args:
        module_op: The module, in the torch dialect.
    """
    found = False

    def visit(op: Operation) -> WalkResult:
        nonlocal found
        if op.name in _CONVOLUTIONS:
            sizes = str(op.operands[0].type).partition("[")[2].partition("]")[0].split(",")
            found = len(sizes) == 4 and "?" in sizes[2:]
        return WalkResult.INTERRUPT if found else WalkResult.ADVANCE

    module_op.walk(visit)
    return found


def channels_of_tile(features: Collection[str]) -> int:
    """Return how many output channels of four places a processor's registers hold as float32.

    Args:
        features: What the processor can do, as LLVM names it.

    Example:
        >>> channels_of_tile(["avx2", "avx512f"])
        64
    """
    return 64 if "avx512f" in features else 16


def compile_with_larger_tiles(
    source: Path, target: Path, flags: Sequence[str], channels: int
) -> bool:
    """Compile a module to a `.vmfb`, with larger tiles for its convolutions of dynamic width.

    Both compiles are processes of their own.

    Args:
        source: The module.
        target: The file to write.
        flags: Flags of `iree-compile` for a processor.
        channels: The most output channels of a tile, from `channels_of_tile`.

    Returns:
        Whether it worked: the compiler may refuse the module, or such tiles, or need none.
    """
    try:
        return _compile_twice(source, target, [*flags, _DATA_OUTSIDE], channels)
    except CompilerFailed:
        return False


def _compile_twice(source: Path, target: Path, flags: Sequence[str], channels: int) -> bool:
    with tempfile.TemporaryDirectory(prefix="pelton-") as folder:
        chosen, final, better = (Path(folder, name) for name in ("chosen", "final", "better"))
        better.mkdir()
        configurations = f"--iree-hal-dump-executable-configurations-to={folder}/configurations"
        first = [*flags, *_UNTIL_TILES, configurations, _dumping(chosen)]
        compile_file_isolated(source, Path(folder, "module.mlirbc"), first)
        for file in Path(folder, "configurations").iterdir():
            text = _enlarged(file.read_text(), channels)
            if text is not None:
                Path(better, file.name.removeprefix(_CONFIGURED)).write_text(text)
        if not any(better.iterdir()):
            return False
        exchanged = f"--iree-hal-substitute-executable-configurations-from={better}"
        compile_file_isolated(source, target, [*flags, exchanged, _dumping(final)])
        for file in better.iterdir():
            if Path(chosen, file.name).read_bytes() != Path(final, file.name).read_bytes():
                raise CompilerFailed(f"{file.stem} is another function in the second compile")
    return True


def _dumping(folder: Path) -> str:
    return f"--iree-hal-dump-executable-sources-to={folder}"


def _enlarged(executable: str, channels: int) -> str | None:
    """Return an executable with larger tiles; None where there is nothing to exchange."""
    if "dense_resource" in executable:
        return None
    with Context():
        module = Module.parse(executable)
        changed = [_enlarge(function, channels) for function in _functions(module.operation)]
        return str(module) if any(changed) else None


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


def _enlarge(function: Operation, channels: int) -> bool:
    """Exchange the tiles of a function, and tell whether it is a convolution that needs it."""
    tiled = _tiled_operations(function)
    roots = [each for each in tiled if "vector_reduction" in each.tiles]
    if len(roots) != 1:
        return False
    (root,) = roots
    sizes = _sizes(root.op)
    if sizes is None or any(each.parallel != root.parallel for each in tiled):
        return False
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
    return True


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
