"""Phase passes: the rewrites of a program between the phases of IREE's compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from iree.compiler.ir import Operation

from .faults.const_eval_barriers import insert_const_eval_barriers
from .faults.constant_results import split_constant_results
from .faults.conv_tiles import override_conv_lowering_config
from .faults.data_tiling import mark_static_matmuls
from .faults.empty_divisors import guard_divisions
from .faults.float64_functions import expand_float64_functions
from .faults.invariant_reductions import materialize_invariant_reduction_inputs
from .faults.padded_convolutions import decompose_dynamic_pads
from .faults.rounded_constants import round_constants
from .faults.shared_destinations import separate_destinations
from .faults.shared_storage import copy_shared_storage
from .faults.size_assumptions import assume_no_elements
from .faults.strided_sources import materialize_strided_sources
from .faults.workload_ordinals import fix_workload_ordinals

STREAM_TENSORS = "stream-tensors"
"""The point within the phase `stream` at which the program is `stream.tensor` operations."""

Pass = Callable[[Operation], None]
"""Rewrites a module in place."""


@dataclass(frozen=True)
class PhasePasses:
    """The passes to run between the phases of IREE's compiler.

    Reductions with loop-invariant operands are rewritten in every program
    (`faults/const_eval_barriers.py`, `faults/invariant_reductions.py`), operations with several
    constant results are split (`faults/constant_results.py`), what is written in place is copied
    (`faults/shared_destinations.py`, `faults/shared_storage.py`), and so are slices of a step that
    are gathered from (`faults/strided_sources.py`). Constants are rounded to the types that they
    are used in (`faults/rounded_constants.py`), and functions of float64 become arithmetic
    (`faults/float64_functions.py`).

    Attributes:
        dynamic_sizes: Whether the program has dynamic sizes. Then pads are decomposed
            (`faults/padded_convolutions.py`), data tiling is limited to the matrix products that
            it can take (`faults/data_tiling.py`), and workload ordinals are fixed
            (`faults/workload_ordinals.py`).
        channel_tile: The most output channels in a tile of a convolution of dynamic width, from
            `output_channel_tile`; 0: IREE's own tiles (`faults/conv_tiles.py`).
        empty_sizes: Whether a size that varies may be 0, which IREE excludes
            (`faults/size_assumptions.py`), and divides by (`faults/empty_divisors.py`).

    Example:
        >>> phases = [phase for phase, _ in PhasePasses(channel_tile=64).pipeline()]
        >>> phases[0], phases[-1]
        ('input', 'executable-configurations')
    """

    dynamic_sizes: bool = False
    channel_tile: int = 0
    empty_sizes: bool = False

    def pipeline(self) -> Iterator[tuple[str, Pass]]:
        """Yield each pass with the phase that it runs after, in the order of the phases."""
        if self.empty_sizes:
            yield "input", assume_no_elements
        yield "input", expand_float64_functions
        yield "input", split_constant_results
        yield "input", round_constants
        yield "input", separate_destinations
        yield "input", materialize_strided_sources
        if self.dynamic_sizes:
            yield "input", decompose_dynamic_pads
        yield "preprocessing", insert_const_eval_barriers
        if self.dynamic_sizes:
            yield "global-optimization", mark_static_matmuls
        yield STREAM_TENSORS, copy_shared_storage
        yield "executable-sources", materialize_invariant_reduction_inputs
        if self.dynamic_sizes:
            yield "executable-sources", fix_workload_ordinals
        if self.channel_tile:
            override = functools.partial(override_conv_lowering_config, channels=self.channel_tile)
            yield "executable-configurations", override
        if self.empty_sizes:
            yield "hal", guard_divisions


def output_channel_tile(features: Collection[str]) -> int:
    """Return the most output channels of a convolution tile that fits a CPU's vector registers.

    Args:
        features: The CPU's features in LLVM's spelling.

    Returns:
        The number of float32 channels for a tile of four pixels.

    Example:
        >>> output_channel_tile(["avx2", "avx512f"])
        64
    """
    return 64 if "avx512f" in features else 16
