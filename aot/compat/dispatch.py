"""Dispatch of torch: modes that see each operator, and kernels in Python for symbolic sizes."""

from __future__ import annotations

from torch._dispatch.python import enable_python_dispatcher
from torch.utils._python_dispatch import TorchDispatchMode

__all__ = ["TorchDispatchMode", "enable_python_dispatcher"]
