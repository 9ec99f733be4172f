"""The table of targets."""

from __future__ import annotations

import difflib
from typing import Any

from ..spec.errors import ExportError
from .base import Target
from .iree.target import IreeTarget
from .tensorrt import TensorRTTarget

TARGETS: dict[str, Target] = {
    "cpu": IreeTarget("cpu", backend="llvm-cpu"),
    "llvm-cpu": IreeTarget("llvm-cpu", backend="llvm-cpu"),
    "vmvx": IreeTarget("vmvx", backend="vmvx"),
    "cuda": IreeTarget("cuda", backend="cuda"),
    "rocm": IreeTarget("rocm", backend="rocm"),
    "vulkan": IreeTarget("vulkan", backend="vulkan-spirv"),
    "vulkan-spirv": IreeTarget("vulkan-spirv", backend="vulkan-spirv"),
    "tensorrt": TensorRTTarget(),
}
"""All targets by the name that users give."""


def find_target(name: str) -> tuple[Target, dict[str, Any]]:
    """Return the target of a name such as `cpu` or `cuda:sm_80`, and the options that it implies.

    Raises:
        ExportError: There is no such target; lists those that there are.
    """
    base, _, architecture = name.partition(":")
    if base not in TARGETS:
        close = difflib.get_close_matches(base, TARGETS, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ExportError(f"unknown target {name!r}; known: {', '.join(TARGETS)}{hint}")
    return TARGETS[base], {"arch": architecture} if architecture else {}
