"""Options of targets from keyword arguments; refusals and reports."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pelton.aot.spec.errors import ExportError, SourceLocation
from pelton.aot.targets.base import FunctionReport, Refusal, make_options


@dataclass(frozen=True)
class Options:
    level: int = 1
    name: str = "a"
    derived: str = field(default="x", init=False)


def test_options_have_their_defaults() -> None:
    assert make_options(Options, {}, "demo") == Options()
    assert make_options(Options, {"level": 2}, "demo") == Options(level=2)


@pytest.mark.parametrize("unknown", ["levels", "derived"])
def test_an_unknown_option_lists_the_known_ones(unknown: str) -> None:
    message = f"target 'demo' has no option '{unknown}'; known: level, name"
    with pytest.raises(ExportError) as caught:
        make_options(Options, {unknown: 1}, "demo")
    assert str(caught.value) == message


def test_a_refusal_names_operator_line_and_reason() -> None:
    assert str(Refusal("aten.fft", "no ONNX form")) == "aten.fft: no ONNX form"
    located = Refusal("aten.fft", "no ONNX form", SourceLocation("m.py", 3))
    assert str(located) == "aten.fft (at m.py:3): no ONNX form"


def test_a_function_is_supported_without_refusals() -> None:
    assert FunctionReport("main", {}, ()).supported
    assert not FunctionReport("main", {}, (Refusal("aten.fft", "no ONNX form"),)).supported
