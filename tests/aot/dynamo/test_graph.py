"""Partition of graphs of AOTAutograd: aliases and constants stay outside of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from pelton.aot.dynamo.graph import (
    Constant,
    InputAlias,
    ProgramOutput,
    copy_of,
    layout_of,
    partition_graph,
)


def traced(function: Callable[..., Any], *args: Any) -> GraphModule:
    return make_fx(function, tracing_mode="fake")(*args)


def test_a_computed_output_is_a_result_of_the_program() -> None:
    parts = partition_graph(traced(lambda x: [x + 1], torch.ones(2)))
    assert parts.outputs == (ProgramOutput(0, None),)
    assert parts.inputs == (0,)
    assert parts.program is not None


def test_inputs_and_constants_never_enter_the_program() -> None:
    parts = partition_graph(traced(lambda x, y: [x * 2, y, None, 3], torch.ones(2), torch.ones(1)))
    computed, alias, nothing, number = parts.outputs
    assert computed == ProgramOutput(0, None)
    assert alias == InputAlias(1)
    assert (nothing, number) == (Constant(None), Constant(3))
    assert parts.inputs == (0,)  # nothing reads y


def test_a_graph_that_computes_nothing_has_no_program() -> None:
    parts = partition_graph(traced(lambda x: [x], torch.ones(2)))
    assert parts.program is None
    assert parts.outputs == (InputAlias(0),)


def test_a_value_that_is_given_twice_is_computed_once() -> None:
    def twice(x: torch.Tensor) -> list[torch.Tensor]:
        y = x + 1
        return [y, y]

    parts = partition_graph(traced(twice, torch.ones(2)))
    assert parts.outputs == (ProgramOutput(0, None), ProgramOutput(0, None))


def test_the_layout_of_eager_is_remembered() -> None:
    parts = partition_graph(traced(lambda x: [torch.ops.aten.t(x) + 0], torch.ones(2, 3)))
    (output,) = parts.outputs
    assert isinstance(output, ProgramOutput)
    assert output.order == (1, 0)


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.zeros(2, 3), None),
        (torch.zeros(2, 3).t(), (1, 0)),
        (torch.zeros(()), None),
        (torch.zeros(1, 5).t(), None),  # a size of 1 has no layout
        (torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last), (0, 2, 3, 1)),
        (torch.zeros(4, 4)[:, :2], None),  # gaps
        (torch.zeros(1).expand(3), None),  # overlaps
        (torch.zeros(0, 3), None),
        (3, None),
    ],
)
def test_layouts_of_dense_tensors(tensor: Any, expected: tuple[int, ...] | None) -> None:
    assert layout_of(tensor) == expected


def test_a_copy_has_a_graph_of_its_own() -> None:
    module = traced(lambda x: [x + 1], torch.ones(2))
    copied = copy_of(module)
    copied.graph.erase_node(copied.graph.output_node())
    assert module.graph.output_node() is not None
