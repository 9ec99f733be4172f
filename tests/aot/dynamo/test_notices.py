"""Warnings about graphs, at the user's own line."""

from __future__ import annotations

import warnings

import torch
from torch.fx import Graph, GraphModule

from pelton.aot.dynamo.notices import tell, tell_fallback
from pelton.aot.spec.errors import SourceLocation, UnsupportedOpError


def module(trace: str | None = None) -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    y = graph.call_function(torch.ops.aten.neg.default, (x,))
    y.meta["stack_trace"] = trace
    graph.output(y)
    return GraphModule(torch.nn.Module(), graph)


def told(graph: GraphModule, location: SourceLocation | None = None) -> warnings.WarningMessage:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        tell(graph, "a notice", location)
    (warning,) = found
    return warning


def test_a_notice_stands_at_the_first_line_of_the_graph() -> None:
    warning = told(module('File "/me/model.py", line 7, in forward'))
    assert (warning.filename, warning.lineno) == ("/me/model.py", 7)
    assert str(warning.message) == "a notice"


def test_a_notice_stands_at_the_line_that_is_given() -> None:
    warning = told(module('File "/me/model.py", line 7, in f'), SourceLocation("/me/other.py", 3))
    assert (warning.filename, warning.lineno) == ("/me/other.py", 3)


def test_a_graph_without_lines_is_still_told_of() -> None:
    assert issubclass(told(module()).category, UserWarning)


def test_a_fallback_says_how_much_runs_in_eager_and_why() -> None:
    error = UnsupportedOpError("aten.fft has no lowering", location=SourceLocation("/me/m.py", 9))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        tell_fallback(module(), error, "cpu")
    (warning,) = found
    assert (warning.filename, warning.lineno) == ("/me/m.py", 9)
    text = str(warning.message)
    assert text.startswith("a graph of 1 operators runs in eager")
    assert "aten.fft has no lowering" in text
    assert "options={'fallback': False}" in text
