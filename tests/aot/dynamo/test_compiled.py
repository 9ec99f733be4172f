"""Calls of compiled graphs: results, aliases, constants, layouts, drawn numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pelton.aot.dynamo.compiled import call_of
from pelton.aot.dynamo.graph import Constant, InputAlias, PartitionedGraph, ProgramOutput


def graph(*outputs: Any, inputs: tuple[int, ...] = (0,), held: tuple[Any, ...] = ()) -> Any:
    return PartitionedGraph(None, inputs, held, outputs)


def doubled(leaves: Sequence[Any]) -> list[Any]:
    return [leaf * 2 for leaf in leaves]


def test_outputs_are_results_aliases_and_constants() -> None:
    call = call_of(graph(ProgramOutput(0, None), InputAlias(1), Constant(None)), doubled)
    x, y = torch.ones(2), torch.zeros(1)
    result, alias, nothing = call([x, y])
    assert result.tolist() == [2.0, 2.0]
    assert alias is y
    assert nothing is None


def test_only_inputs_that_are_read_are_passed_and_held_tensors_behind_them() -> None:
    passed: list[Any] = []

    def run(leaves: Sequence[Any]) -> list[Any]:
        passed.extend(leaves)
        return [None]

    call_of(graph(ProgramOutput(0, None), inputs=(2, 0), held=("weight",)), run)(["a", "b", "c"])
    assert passed == ["c", "a", "weight"]


def test_a_result_gets_the_layout_of_eager() -> None:
    call = call_of(graph(ProgramOutput(0, (1, 0))), lambda leaves: [torch.zeros(2, 3)])
    (result,) = call([torch.zeros(1)])
    assert result.shape == (3, 2)
    assert result.stride() == (1, 3)


def test_the_list_of_inputs_is_emptied() -> None:
    arguments: list[Any] = [torch.ones(1)]
    call_of(graph(ProgramOutput(0, None)), doubled)(arguments)
    assert arguments == []


def test_drawn_numbers_are_the_last_inputs() -> None:
    call = call_of(
        graph(ProgramOutput(1, None), inputs=(0, 1)),
        doubled,
        lambda arguments: [torch.full((), 3.0)],
    )
    (result,) = call([torch.ones(2)])
    assert result.item() == 6.0
