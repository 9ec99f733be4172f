"""What Pelton asks of IREE at each level; docs/optimization_levels.md has the numbers."""

from __future__ import annotations

_PREPROCESSING = "--iree-preprocessing-pass-pipeline=builtin.module(util.func({}))"
CHANNELS_LAST = "iree-preprocessing-convert-conv-to-channels-last"
_SPLIT_ATTENTION = (
    "iree-linalg-ext-convert-attention-to-online-attention,iree-linalg-ext-decompose-attention"
)

_SHAPING = (
    _PREPROCESSING.format(f"{CHANNELS_LAST},{_SPLIT_ATTENTION}"),
    "--iree-llvmcpu-reassociate-fp-reductions",
)
"""Convolutions with the channels last, attention as products and a softmax, sums in any order.

IREE's code for processors is good at all of them, and ten times slower at attention as one."""

DATA_TILING = "--iree-opt-data-tiling"

DEFAULT_LEVEL = 3

CPU_OPT_LEVELS: dict[int, tuple[str, ...]] = {
    0: ("--iree-opt-level=O0",),
    1: ("--iree-opt-level=O1",),
    2: ("--iree-opt-level=O1", *_SHAPING),
    3: ("--iree-opt-level=O1", *_SHAPING, DATA_TILING),
    4: ("--iree-opt-level=O1", *_SHAPING, DATA_TILING),
    5: ("--iree-opt-level=O3", *_SHAPING, DATA_TILING),
}
"""The flags of each `optimization_level` for processors. Up to level 3, data is not tiled where
parameters are external: they would be copied at each load, and no longer be shared between programs
and with the archive."""

CPU_VARIANTS: dict[str, tuple[str, ...]] = {
    "tiled": CPU_OPT_LEVELS[4],
    "untiled": CPU_OPT_LEVELS[2],
    "fused": ("--iree-opt-level=O2", *_SHAPING, DATA_TILING),
    "aggressive": CPU_OPT_LEVELS[5],
    "microkernels": (*CPU_OPT_LEVELS[4], "--iree-llvmcpu-enable-ukernels=all"),
    "transposed": (*CPU_OPT_LEVELS[4], "--iree-opt-aggressively-propagate-transposes"),
    "whole-attention": (
        "--iree-opt-level=O1", _PREPROCESSING.format(CHANNELS_LAST), DATA_TILING
    ),
}  # fmt: skip
"""What a tuning tries for processors, by name: each is faster than the others on some program."""

GPU_LEVELS: dict[int, tuple[str, ...]] = {
    level: (f"--iree-opt-level=O{min(level, 3)}",) for level in CPU_OPT_LEVELS
}
"""The flags of each `optimization_level` for everything else."""
