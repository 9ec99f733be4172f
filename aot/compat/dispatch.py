"""Dispatch modes of torch, which see each operator that runs while they are active."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["TorchDispatchMode"]
