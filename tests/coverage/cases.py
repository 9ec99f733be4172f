"""The cases of both suites by key, each as a function that returns its outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pelton.aot import NamedDimension

from . import models
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
        "batch": NamedDimension("batch", 1, 2, 16),
        "length": NamedDimension("length", 4, 12, 40),
    }
    axes = models.INPUTS[architecture.inputs].dynamic.values()
    return {"tensors": tuple({axis: named[name] for axis, name in each.items()} for each in axes)}
