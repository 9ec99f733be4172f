"""The cases of both suites by line of their table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from pelton import aot
from pelton.aot import NamedDimension
from pelton.codegen import cpu_target

from . import models, operators
from .architectures import ARCHITECTURES, Architecture
from .comparison import Trial
from .isolation import Case, Found, Outcome
from .results import Line

DTYPES = (torch.float32, torch.int64, torch.bool, torch.float16, torch.bfloat16)
"""Element types that operators are measured in, where torch's database has them."""


def model_cases() -> dict[Line, Case]:
    """Return a case for each architecture; all sizes of `INPUTS` are dynamic in one variant."""
    import transformers  # noqa: F401 - once, rather than in each child

    return {(found.name, "float32"): _model_case(found) for found in ARCHITECTURES}


def _model_case(architecture: Architecture) -> Case:
    def case(variants: Sequence[str]) -> Iterator[Found]:
        model = models.make_model(architecture)
        calls = [models.make_inputs(architecture, size) for size in models.SIZES]
        trial = Trial(model, calls, _axes(architecture))
        for variant in variants:
            yield variant, trial.outcome(variant)

    return case


def _axes(architecture: Architecture) -> dict[str, Any]:
    named = {
        "batch": NamedDimension("batch", 2, 2, 16),
        "length": NamedDimension("length", 4, 12, 40),
    }
    axes = models.INPUTS[architecture.inputs].dynamic.values()
    return {"tensors": tuple({axis: named[name] for axis, name in each.items()} for each in axes)}


def operator_cases() -> dict[Line, Case]:
    """Return a case for each operator and element type, those of float32 first."""
    infos = operators.operator_infos()
    return {
        (operators.full_name(info), str(dtype).removeprefix("torch.")): _operator_case(info, dtype)
        for dtype in DTYPES
        for info in infos
        if info.supports_dtype(dtype, "cpu")
    }


def _operator_case(info: Any, dtype: torch.dtype) -> Case:
    values = not operators.is_random(operators.full_name(info))

    def trial(sample: operators.Sample) -> Trial:
        axes = {"tensors": tuple(map(_every_axis, sample.tensors))}
        has_values = lambda: values and operators.is_deterministic(sample)  # noqa: E731
        return Trial(sample.function, [sample.tensors], axes, has_values)

    def case(variants: Sequence[str]) -> Iterator[Found]:
        samples = operators.samples_of(info, dtype)
        if not samples:
            none = Outcome("unmeasured", "eager", "the database has no sample")
            yield from ((variant, none) for variant in variants)
            return
        together = trial(operators.together(samples))
        single = [trial(sample) for sample in samples] if len(samples) > 1 else []
        for variant in variants:
            outcome = together.outcome(variant)
            if outcome.status != "ok" and single:
                outcome = operators.worst(each.outcome(variant) for each in single)
            yield variant, outcome

    return case


def _every_axis(tensor: torch.Tensor) -> dict[int, Any]:
    """Let all sizes vary but those of 1, by which samples ask to be broadcast."""
    return {axis: torch.export.Dim.AUTO for axis, size in enumerate(tensor.shape) if size != 1}


def warm_up() -> None:
    """Do once what each child would have to do anew, without starting a thread."""
    torch.set_num_threads(1)
    varies = {"x": {0: torch.export.Dim.AUTO}}
    output = aot.export(
        lambda x: torch.softmax(x + 1, 0), args=(torch.ones(3, 4),), dynamic_shapes=varies
    )
    with tempfile.TemporaryDirectory() as folder:
        output.to_onnx(Path(folder, "model.onnx"))
    cpu_target("host", "")
