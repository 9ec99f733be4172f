"""Options of engine builds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pelton.runtime.files import StrPath

from ...spec.errors import ExportError
from ...spec.profiles import Profiles

Weights = Literal["baked", "shared", "refit"]
"""Where the weights of engines are."""

DEFAULT_LEVEL = 3


@dataclass(frozen=True)
class TensorRTOptions:
    """Options of a compile into TensorRT engines.

    Attributes:
        flavor: `rtx`: TensorRT-RTX, which builds anywhere for RTX GPUs; `tensorrt`: TensorRT, which
            builds on its GPU for that GPU; `auto`: TensorRT where it and a GPU are there.
        optimization_level: 0 to 5, the builder's own; None: `DEFAULT_LEVEL`.
        timing_cache: File of kernel timings that builds of TensorRT share; made when it is not
            there. TensorRT-RTX measures nothing.
        compute_capabilities: GPUs that the engines run on, such as `8.9`; empty: for `rtx` all
            from 8.0 on, for `tensorrt` that of the machine.
        workspace_bytes: The most scratch memory of a layer; None: the GPU's.
        profiles: Several sets of bounds by dimension, each an optimisation profile of the engines,
            as `export(profiles=…)` takes them; None: those of the export, or one of all bounds.
        weights: `baked`: in each engine; `shared`: inputs of the engines, with one copy in the
            package for all entry points; `refit`: baked, and replaceable in the plan by name.
        fallback: `iree`: compile functions that TensorRT cannot take with IREE for CUDA into the
            same package; None: refuse them.
        layer_info: Keep a description of each layer of the network, with the user's lines, in the
            package, and where there is a GPU also what the engine inspector says of the engine.
        reference: Keep the ONNX graphs in the package, so that `device="reference"` runs it
            without a GPU.

    Raises:
        ExportError: A value is impossible.

    Example:
        >>> TensorRTOptions(optimization_level=7)
        Traceback (most recent call last):
        ...
        pelton.runtime.errors.ExportError: optimization_level must be 0 to 5, got 7
    """

    flavor: str = "auto"
    optimization_level: int | None = None
    timing_cache: StrPath | None = None
    compute_capabilities: Sequence[str] = ()
    workspace_bytes: int | None = None
    profiles: Profiles | None = None
    weights: Weights = "baked"
    fallback: str | None = None
    layer_info: bool = False
    reference: bool = False

    def __post_init__(self) -> None:
        level, workspace = self.optimization_level, self.workspace_bytes
        if level is not None and (type(level) is not int or not 0 <= level <= 5):
            raise ExportError(f"optimization_level must be 0 to 5, got {level!r}")
        _require_one_of("flavor", self.flavor, ("auto", "tensorrt", "rtx"))
        _require_one_of("weights", self.weights, get_args(Weights))
        _require_one_of("fallback", self.fallback, (None, "iree"))
        if workspace is not None and (type(workspace) is not int or workspace <= 0):
            raise ExportError(f"workspace_bytes must be a number of bytes, got {workspace!r}")
        if self.timing_cache is not None and not isinstance(self.timing_cache, (str, os.PathLike)):
            raise ExportError(f"timing_cache must be the path of a file, got {self.timing_cache!r}")
        for name in ("layer_info", "reference"):
            if type(getattr(self, name)) is not bool:
                raise ExportError(f"{name} must be True or False, got {getattr(self, name)!r}")
        given = self.compute_capabilities
        if isinstance(given, str) or not all(isinstance(each, str) for each in given):
            raise ExportError(f"compute_capabilities must be texts such as '8.9', got {given!r}")
        object.__setattr__(self, "compute_capabilities", tuple(given))

    @property
    def level(self) -> int:
        """The optimisation level, with the default in place of None."""
        return DEFAULT_LEVEL if self.optimization_level is None else self.optimization_level


def _require_one_of(name: str, value: object, choices: tuple[object, ...]) -> None:
    if value not in choices:
        known = ", ".join(map(repr, choices))
        raise ExportError(f"{name} must be one of {known}, got {value!r}")
