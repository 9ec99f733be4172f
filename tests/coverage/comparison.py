"""Export, compile or convert, call, and compare with eager torch."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from pelton import aot, runtime

from .isolation import Outcome
from .onnx_model import OnnxModel

TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float32: (1e-3, 1e-4),
    torch.float64: (1e-6, 1e-8),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (3e-2, 3e-2),
    torch.complex64: (1e-3, 1e-4),
    torch.complex128: (1e-6, 1e-8),
}
"""Relative and absolute tolerance by element type; other types must be equal."""

Arguments = tuple[torch.Tensor, ...]


class Trial:
    """A function, calls of it, and what its forms give beside eager.

    Args:
        target: Takes and returns tensors.
        calls: Arguments of the calls; the first are the example of the export.
        axes: Which sizes vary in the dynamic form, as `aot.export` takes it.
        has_values: Whether numbers can be compared; else types and shapes are.
    """

    def __init__(
        self,
        target: Callable[..., Any],
        calls: Sequence[Arguments],
        axes: Any = None,
        has_values: Callable[[], bool] = lambda: True,
    ) -> None:
        self.target = target
        self.calls = calls
        self.axes = axes
        self._has_values = has_values

    def outcome(self, variant: str) -> Outcome:
        """Return what becomes of a variant of `results.VARIANTS`."""
        if isinstance(self._wanted, Outcome):
            return self._wanted
        dynamic = variant in ("dynamic", "engine")
        output = self._export(self.axes) if dynamic else self._static
        if isinstance(output, Outcome):
            return output
        function = _FORMS.get(variant, _iree)(output)
        if isinstance(function, Outcome):
            return function
        return self._compare(function, len(self.calls) if dynamic else 1)

    @cached_property
    def _wanted(self) -> list[list[Any]] | Outcome:
        try:
            return [_leaves(self.target(*_copies(call))) for call in self.calls]
        except Exception as error:
            return Outcome("unmeasured", "eager", _words(error))

    @cached_property
    def _static(self) -> aot.ExportOutput | Outcome:
        return self._export(None)

    @cached_property
    def _values(self) -> bool:
        return self._has_values()

    def _export(self, axes: Any) -> aot.ExportOutput | Outcome:
        try:
            return aot.export(self.target, args=self.calls[0], dynamic_shapes=axes)
        except Exception as error:
            return _refusal("export", error)

    def _compare(self, function: Callable[..., Any], count: int) -> Outcome:
        assert not isinstance(self._wanted, Outcome)
        for call, want in zip(self.calls[:count], self._wanted, strict=False):
            try:
                got = _leaves(function(*_copies(call)))
            except Exception as error:
                return _refusal("run", error)
            difference = _difference(want, got, self._values)
            if difference and _difference(_in_double(self.target, call, want), got, self._values):
                return Outcome("wrong", "compare", difference)
        return Outcome("ok")


def _iree(output: aot.ExportOutput) -> Callable[..., Any] | Outcome:
    try:
        binary = output.compile()
    except Exception as error:
        return _refusal("compile", error)
    assert binary is not None
    try:
        return runtime.load(bytes(binary.map_memory()))
    except Exception as error:
        return _refusal("load", error)


def _onnx(output: aot.ExportOutput) -> Callable[..., Any] | Outcome:
    try:
        return OnnxModel(output)
    except Exception as error:
        refused = isinstance(error, aot.PeltonError)
        return _refusal("compile" if refused else "load", error)


def _engine(output: aot.ExportOutput) -> Callable[..., Any] | Outcome:
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "model.trtm")
        try:
            output.compile(package, target="tensorrt", reference=True)
        except Exception as error:
            return _refusal("compile", error)
        try:
            return runtime.load(package.read_bytes(), device="reference")
        except Exception as error:
            return _refusal("load", error)


_FORMS = {"onnx": _onnx, "engine": _engine}


def _in_double(target: Callable[..., Any], call: Arguments, wanted: list[Any]) -> list[Any]:
    """Return the results of eager in float64, which decides where narrower floats are off."""
    try:
        exact = _leaves(target(*map(_widened, _copies(call))))
    except Exception:
        return wanted
    return [
        value.to(like.dtype) if isinstance(like, torch.Tensor) else value
        for value, like in zip(exact, wanted, strict=True)
    ]


def _widened(value: Any) -> Any:
    narrow = isinstance(value, torch.Tensor) and value.dtype.is_floating_point
    return value.double() if narrow else value


def _copies(call: Arguments) -> list[Any]:
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in call]


def _leaves(result: Any) -> list[Any]:
    return torch.utils._pytree.tree_leaves(result)


def _refusal(stage: str, error: Exception) -> Outcome:
    status = "refused" if isinstance(error, aot.PeltonError) else "failed"
    operators = getattr(error, "operators", ())
    named = f"[{', '.join(operators)}] " if operators else ""
    return Outcome(status, stage, named + _words(error))


def _words(error: Exception) -> str:
    """Return the error in one line, without the paths of this machine."""
    text = " ".join(str(error).split())
    text = re.sub(r" Reproducer: \S+( \(command\.txt, diagnostics\.txt\))?", "", text)
    text = re.sub(r"(/[\w.+-]+)+/([\w.+-]+)", r"\2", text)
    return f"{type(error).__name__}: {text}"[:300]


def _difference(wanted: list[Any], got: list[Any], values: bool) -> str:
    if len(wanted) != len(got):
        return f"{len(got)} results, {len(wanted)} wanted"
    for position, (want, have) in enumerate(zip(wanted, got, strict=True)):
        if not isinstance(want, torch.Tensor):
            if want != have:
                return f"result {position} is {have!r}, {want!r} wanted"
            continue
        if want.dtype != have.dtype or want.shape != have.shape:
            return (
                f"result {position} is {have.dtype}{list(have.shape)}, "
                f"{want.dtype}{list(want.shape)} wanted"
            )
        rtol, atol = TOLERANCES.get(want.dtype, (0.0, 0.0))
        if not values or torch.allclose(have, want, rtol, atol, equal_nan=True):
            continue
        worst = (have.to(torch.complex128) - want.to(torch.complex128)).abs()
        return f"result {position} differs by up to {worst.nan_to_num(torch.inf).max():.3g}"
    return ""
