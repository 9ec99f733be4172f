"""References: the program or its module, run on input leaves, with state to read and write."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.raising.torch_program import to_torch
from pelton.aot.spec.errors import ExportError
from pelton.aot.verify.reference import (
    EagerReference,
    RaisedReference,
    Reference,
    eager_reference,
    is_runnable,
    result_leaves,
)
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import ConstantSpec, Parameter, Signature, TensorSpec
from pelton.runtime.errors import SignatureError

VECTOR = TensorSpec(DTYPES["float32"], (2,))


def signature(result_tree: Any = 0, results: tuple[Any, ...] = (VECTOR,)) -> Signature:
    parameter = Parameter("x", "POSITIONAL_OR_KEYWORD", 0)
    return Signature("main", (parameter,), (VECTOR,), result_tree, results)


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        return self.total

    def again(self, x: torch.Tensor) -> torch.Tensor:
        return self.forward(x)


def raised_counter() -> Reference:
    class Program(aot.CompiledModule):
        total = aot.export_global(torch.zeros(2), mutable=True)

        def main(self, x=aot.AbstractTensor(2)):  # type: ignore[no-untyped-def]
            self.total = self.total + x
            return self.total

    program = to_torch(aot.export(Program))
    return RaisedReference(program.functions["main"], program.state)


def eager_counter() -> Reference:
    counter = Counter()
    found = eager_reference(signature(), counter)
    found.kept = counter  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("make", [eager_counter, raised_counter], ids=["eager", "raised"])
def test_state_is_read_as_copies_and_written_in_place(make: Any) -> None:
    reference = make()
    assert [*reference.state_names] == ["total"]
    before = reference.get_state()
    assert reference([torch.ones(2)])[0].tolist() == [1, 1]
    assert before["total"].tolist() == [0, 0]
    reference.set_state({"total": torch.full((2,), 5.0), "other": torch.zeros(9)})
    assert reference.get_state()["total"].tolist() == [5, 5]
    assert reference([torch.ones(2)])[0].tolist() == [6, 6]
    reference.set_state({})
    assert reference.get_state()["total"].tolist() == [6, 6]


@pytest.mark.parametrize("make", [eager_counter, raised_counter], ids=["eager", "raised"])
def test_state_that_was_set_is_not_written_to_by_later_calls(make: Any) -> None:
    reference, given = make(), torch.full((2,), 5.0)
    reference.set_state({"total": given})
    reference([torch.ones(2)])
    assert given.tolist() == [5, 5]


def test_inputs_are_not_written_to() -> None:
    reference, x = EagerReference(lambda leaves: leaves[0].add_(1), signature()), torch.zeros(2)
    assert reference([x])[0].tolist() == [1, 1]
    assert x.tolist() == [0, 0]
    assert reference.state_names == ()


def test_no_gradient_is_recorded() -> None:
    layer = torch.nn.Linear(2, 2)
    assert not eager_reference(signature(), layer)([torch.ones(2)])[0].requires_grad


def test_a_bound_method_has_the_state_of_its_module() -> None:
    counter = Counter()
    reference = eager_reference(signature(), counter.again)
    assert [*reference.state_names] == ["total"]
    assert reference([torch.ones(2)])[0].tolist() == [1, 1]


def test_an_exported_program_is_called_as_a_module() -> None:
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    assert eager_reference(signature(), program)([torch.tensor([-1.0, 2.0])])[0].tolist() == [0, 2]


@pytest.mark.parametrize("given", [3, torch.nn.ReLU, None], ids=["number", "class", "none"])
def test_what_cannot_be_called_is_refused(given: Any) -> None:
    with pytest.raises(ExportError, match="against: expected a module or function to call, got"):
        eager_reference(signature(), given)


def test_a_module_without_data_is_refused() -> None:
    with torch.device("meta"):
        layer = torch.nn.Linear(2, 2)
    assert not is_runnable(layer)
    with pytest.raises(ExportError, match="tensors without data"):
        eager_reference(signature(), layer)
    with pytest.raises(ExportError, match="tensors without data"):
        eager_reference(signature(), layer.forward)


def test_results_are_flattened_and_constants_are_those_of_the_signature() -> None:
    found = result_leaves(
        signature(["dict", [["a", 1], ["b", 0]]], (VECTOR, ConstantSpec(3))),
        {"a": 3, "b": torch.ones(2)},
    )
    assert found[0].tolist() == [1, 1]
    assert found[1] == 3
    assert result_leaves(signature(None, ()), None) == []


def test_results_of_another_structure_are_refused() -> None:
    with pytest.raises(SignatureError):
        result_leaves(signature(["tuple", [0]]), (torch.ones(2), 1))
