"""What is changed in a program while it is compiled, and at which phase."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Changes:
    """What to change in a program between the phases of IREE's compiler.

    In every program, sums and products of numbers that are all the same are put right
    (`constant_reductions.py`), and constants of several results split (`constant_results.py`).

    Attributes:
        sizes_vary: The program has sizes that only a call tells: write its pads another way
            (`pads.py`), choose the products of matrices whose data are tiled (`data_tiling.py`),
            and put right what IREE gets wrong about such sizes (`workloads.py`).
        tile: The most output channels of the larger tiles for convolutions of dynamic width, from
            `channels_of_tile`; 0: IREE's tiles stay. See `tiles.py`.

    Example:
        >>> [phase for phase, _ in Changes(tile=64).by_phase()]
        ['input', 'preprocessing', 'executable-sources', 'executable-configurations']
    """

    sizes_vary: bool = False
    tile: int = 0

    def by_phase(self) -> Iterator[tuple[str, Callable[[Any], None]]]:
        """Yield the phase at whose end each change is made, and the change of a module.

        The bindings to MLIR are loaded only where something is compiled.
        """
        from .constant_elements import keep_from_evaluation
        from .constant_reductions import mend_reductions
        from .constant_results import split_constant_results
        from .data_tiling import choose_products
        from .pads import write_pads_as_slices
        from .workloads import mend_workloads

        yield "input", split_constant_results
        if self.sizes_vary:
            yield "input", write_pads_as_slices
        yield "preprocessing", keep_from_evaluation
        if self.sizes_vary:
            yield "global-optimization", choose_products
        yield "executable-sources", mend_reductions
        if self.sizes_vary:
            yield "executable-sources", mend_workloads
        if self.tile:
            from .tiles import enlarge_tiles

            yield "executable-configurations", lambda module_op: enlarge_tiles(module_op, self.tile)


def channels_of_tile(features: Collection[str]) -> int:
    """Return how many output channels of four places a processor's registers hold as float32.

    Args:
        features: What the processor can do, as LLVM names it.

    Example:
        >>> channels_of_tile(["avx2", "avx512f"])
        64
    """
    return 64 if "avx512f" in features else 16
