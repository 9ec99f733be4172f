"""The options of `torch.compile(..., backend="pelton", options={...})`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from ..spec.config import CONFIGURED
from ..spec.errors import DeviceError, ExportError
from ..targets import find_target
from ..targets.request import CompileRequest, Storage, compile_request

DEVICES = {
    "cpu": "cpu",
    "llvm-cpu": "cpu",
    "vmvx": "cpu",
    "cuda": "cuda",
    "rocm": "cuda",
    "tensorrt": "cuda",
}
"""Where torch keeps the tensors that a target's programs take (torch calls AMD's GPUs `cuda`)."""

_OWN = ("target", "fallback", "cache_dir", "timing_cache_file_path")


@dataclass(frozen=True)
class Options:
    """What a user asked for, checked.

    Attributes:
        request: How graphs are compiled.
        device: The kind of torch device that the tensors of a graph must be on.
        fallback: Whether a graph that cannot be compiled runs in eager; else that is an error.
    """

    request: CompileRequest
    device: str
    fallback: bool

    @property
    def target(self) -> str:
        """The target as the user named it."""
        return self.request.name


def read_options(given: Mapping[str, Any] | None, mode: str | None, device: str) -> Options:
    """Return the options of a back end.

    Args:
        given: `target`, `fallback`, `cache_dir`, `timing_cache_file_path`, and options of the
            target.
        mode: torch.compile's `mode`, which only TorchInductor has.
        device: The kind of device of a graph's inputs, which decides the target that is not named.

    Raises:
        ExportError: An option is unknown or has an impossible value; lists those that there are.
        DeviceError: The target's programs run on a device that is not there.
    """
    if mode not in (None, "default"):
        raise ExportError(
            f"backend 'pelton' has no mode {mode!r}; use options={{'optimization_level': 0 to 5}}"
        )
    options = dict(given or {})
    target = options.pop("target", None) or ("cuda" if device == "cuda" else "cpu")
    fallback = options.pop("fallback", True)
    if not isinstance(target, str) or not isinstance(fallback, bool):
        wrong = ("target", target) if not isinstance(target, str) else ("fallback", fallback)
        expected = "a name, such as 'cpu'" if wrong[0] == "target" else "True or False"
        raise ExportError(f"options[{wrong[0]!r}] must be {expected}, got {wrong[1]!r}")
    storage = Storage(options.pop("cache_dir", CONFIGURED), options.pop(_OWN[-1], None))
    where = _device_of(target)
    try:
        made = compile_request(target, options, storage)
    except ExportError as error:
        raise ExportError(f"{error}; of backend 'pelton' itself: {', '.join(_OWN)}") from None
    return Options(made, where, fallback)


def _device_of(target: str) -> str:
    """Return the kind of torch device of a target's tensors.

    Raises:
        ExportError: There is no such target, or torch has no tensors where its programs run.
        DeviceError: There is no such device here.
    """
    find_target(target)
    device = DEVICES.get(target.partition(":")[0])
    if device is None:
        raise ExportError(
            f"target {target!r} runs where torch has no tensors; for torch.compile there are: "
            f"{', '.join(DEVICES)}"
        )
    if device == "cuda" and not torch.cuda.is_available():
        raise DeviceError(
            f"target {target!r} needs a CUDA device, and torch {torch.__version__} finds none "
            "here; use options={'target': 'cpu'}"
        )
    return device
