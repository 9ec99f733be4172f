"""The cases of both suites by key, each as a function that returns its outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pelton.aot import NamedDimension

from . import models, operators
from .architectures import ARCHITECTURES, Architecture
from .comparison import check
from .isolation import Outcome
from .results import Key

Case = Callable[[], Outcome]


def model_cases() -> dict[Key, Case]:
    """Return two cases for each architecture: static sizes, and all sizes of `INPUTS` dynamic."""
    import transformers  # noqa: F401 - once, rather than in each child

    cases: dict[Key, Case] = {}
    for architecture in ARCHITECTURES:
        cases[architecture.name, "static"] = _model_case(architecture, dynamic=False)
        cases[architecture.name, "dynamic"] = _model_case(architecture, dynamic=True)
    return cases


def _model_case(architecture: Architecture, *, dynamic: bool) -> Case:
    def case() -> Outcome:
        model = models.make_model(architecture)
        sizes = models.SIZES if dynamic else models.SIZES[:1]
        calls = [models.make_inputs(architecture, size) for size in sizes]
        return check(model, calls, _axes(architecture) if dynamic else None)

    return case


def _axes(architecture: Architecture) -> dict[str, Any]:
    named = {
        "batch": NamedDimension("batch", 2, 2, 16),
        "length": NamedDimension("length", 4, 12, 40),
    }
    axes = models.INPUTS[architecture.inputs].dynamic.values()
    return {"tensors": tuple({axis: named[name] for axis, name in each.items()} for each in axes)}


def operator_cases() -> dict[Key, Case]:
    """Return a case for each operator and element type, and for float32 one with dynamic sizes."""
    cases: dict[Key, Case] = {}
    for info in operators.operator_infos():
        name = operators.full_name(info)
        for dtype in operators.DTYPES:
            if not info.supports_dtype(dtype, "cpu"):
                continue
            spelled = str(dtype).removeprefix("torch.")
            cases[name, f"{spelled} static"] = _operator_case(info, dtype, dynamic=False)
            if dtype is torch.float32:
                cases[name, f"{spelled} dynamic"] = _operator_case(info, dtype, dynamic=True)
    return cases


def _operator_case(info: Any, dtype: torch.dtype, *, dynamic: bool) -> Case:
    values = not operators.is_random(operators.full_name(info))

    def run(sample: operators.Sample) -> Outcome:
        axes = {"tensors": tuple(map(_every_axis, sample.tensors))} if dynamic else None
        compared = values and operators.is_deterministic(sample)
        return check(sample.function, [sample.tensors], axes, values=compared)

    def case() -> Outcome:
        samples = operators.samples_of(info, dtype)
        if not samples:
            return Outcome("unmeasured", "eager", "the database has no sample")
        outcome = run(operators.together(samples))
        if outcome.status == "ok" or len(samples) == 1:
            return outcome
        return operators.worst([run(sample) for sample in samples])

    return case


def _every_axis(tensor: torch.Tensor) -> dict[int, Any]:
    return {axis: torch.export.Dim.AUTO for axis in range(tensor.dim())}
