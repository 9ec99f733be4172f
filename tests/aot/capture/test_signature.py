"""Signatures of captured programs: names and bounds of sizes, leaves, and structure."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim

from pelton import aot
from pelton.aot.capture.program import inputs_and_outputs, normalize
from pelton.aot.capture.signature import (
    signature_of_capture,
    signature_of_program,
    with_constraints_of,
)
from pelton.aot.capture.trace import capture, tracing_settings
from pelton.runtime.call.signature import ConstantSpec, ScalarSpec, Signature

X = torch.ones(2, 3)


def signature(function: Any, *args: Any, shapes: Any = None, **kwargs: Any) -> Signature:
    captured = capture(function, args, kwargs, shapes)
    return signature_of_capture(captured, inputs_and_outputs(captured.program), "f")


def leaves(found: Signature) -> tuple[list[str], list[str]]:
    return [str(leaf) for leaf in found.inputs], [str(leaf) for leaf in found.results]


def test_static_inputs_constants_and_results() -> None:
    found = signature(lambda x, k: (x.sum(1) * k, "done"), X, 4)
    assert leaves(found) == (["float32[2, 3]", "4"], ["float32[2]", "'done'"])
    assert (found.name, found.dims, found.constraints) == ("f", (), ())
    assert found.result_tree == ["tuple", [0, 1]]
    assert {"pelton", "torch", "iree"} <= {name.partition("-")[0] for name in found.producer}


def test_dimensions_have_the_names_and_bounds_of_the_user() -> None:
    shapes = {"x": {0: aot.NamedDimension("batch", 1, 4, 16)}}
    found = signature(lambda x: torch.cat([x, x]), X, shapes=shapes)
    assert leaves(found) == (["float32[batch, 3]"], ["float32[2*batch, 3]"])
    (dim,) = found.dims
    assert (dim.name, dim.min, dim.max, dim.opt) == ("batch", 1, 16, 4)


def test_dimensions_without_a_name_are_named_after_their_argument() -> None:
    found = signature(lambda x: x + 1, X, shapes={"x": {0: Dim.DYNAMIC, 1: Dim.AUTO}})
    assert leaves(found)[0] == ["float32[x_dim0, x_dim1]"]


def test_one_symbol_is_one_dimension() -> None:
    shapes = {"x": {0: "n"}, "y": {0: Dim.AUTO}}
    found = signature(lambda x, y: x + y, X, X, shapes=shapes)
    assert leaves(found)[0] == ["float32[n, 3]", "float32[n, 3]"]
    assert [dim.name for dim in found.dims] == ["n"]


def test_a_name_given_later_wins_over_an_automatic_one() -> None:
    shapes = {"x": {0: Dim.AUTO}, "y": {0: "n"}}
    found = signature(lambda x, y: x + y, X, X, shapes=shapes)
    assert leaves(found)[0] == ["float32[n, 3]", "float32[n, 3]"]


def test_two_names_for_one_size_are_refused() -> None:
    # torch.export says so itself for two dims; by integers it does not
    with pytest.raises(aot.DynamicShapeError, match=r"n.*m|m.*n"):
        signature(lambda x, y: x + y, X, X, shapes={"x": {0: "n"}, "y": {0: "m"}})


def test_a_dynamic_integer_names_a_size() -> None:
    shapes = {"k": aot.NamedDimension("k", 1, 2, 9)}
    found = signature(lambda x, k: x.new_zeros(k), X, 2, shapes=shapes)
    assert leaves(found) == (["float32[2, 3]", "int k"], ["float32[k]"])


def test_results_that_depend_on_values_have_an_unknown_size() -> None:
    found = signature(lambda x: x.nonzero(), X)
    assert leaves(found)[1] == ["int64[?, 2]"]


def test_numbers_of_results() -> None:
    found = signature(lambda x: (x.shape[0], x.sum().item() > 1), X, shapes={"x": {0: "n"}})
    assert found.results[0] == ScalarSpec("int", "n")
    assert found.results[1] == ScalarSpec("bool")


def test_an_automatic_size_that_is_fixed_is_told() -> None:
    with pytest.warns(UserWarning, match=r"argument x: dimension 0 \(Dim.AUTO\) is fixed to 2"):
        found = signature(lambda x: x + torch.ones(2, 3), X, shapes={"x": {0: Dim.AUTO}})
    assert leaves(found)[0] == ["float32[2, 3]"]


def test_constraints_between_sizes_are_stated() -> None:
    def halves(x: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, -1, 3)

    found = signature(halves, torch.ones(4, 3), shapes={"x": {0: Dim.AUTO}})
    assert all(item.holds({"x_dim0": 6}) for item in found.constraints)
    assert not all(item.holds({"x_dim0": 5}) for item in found.constraints)


def test_new_constraints_are_added_once() -> None:
    captured = capture(lambda x: x.reshape(2, -1), (torch.ones(4, 3),), {}, {"x": {0: Dim.AUTO}})
    program = inputs_and_outputs(captured.program)
    found = signature_of_capture(captured, program, "f")
    again = with_constraints_of(found, captured.program, captured.oblivious)
    assert again == found


# Programs that torch.export made


class Net(torch.nn.Module):
    def forward(self, x: Any, *, scale: Any = 2.0) -> Any:
        return {"y": x["a"] * scale, "z": [x["b"].sum(), 7]}


def of_exported(module: Any, *args: Any, shapes: Any = None, **kwargs: Any) -> Signature:
    with tracing_settings():
        program = torch.export.export(module, args, kwargs, dynamic_shapes=shapes)
        program = program.run_decompositions({})
    return signature_of_program(program, normalize(program), "g")


def test_structure_of_an_exported_program() -> None:
    found = of_exported(Net(), {"a": X, "b": X}, scale=3.0)
    assert [(p.name, p.kind) for p in found.parameters] == [
        ("x", "POSITIONAL_OR_KEYWORD"), ("scale", "KEYWORD_ONLY"),
    ]  # fmt: skip
    assert found.parameters[0].tree == ["dict", [["a", 0], ["b", 1]]]
    assert found.parameters[1].tree == 2
    assert found.inputs[2] == ConstantSpec(3.0)
    assert found.result_tree == ["dict", [["y", 0], ["z", ["list", [1, 2]]]]]
    assert leaves(found)[1] == ["float32[2, 3]", "float32[]", "7"]


def test_sizes_of_an_exported_program_are_named_after_its_arguments() -> None:
    found = of_exported(torch.nn.ReLU(), X, shapes=({0: Dim("n", min=2, max=5)},))
    assert leaves(found) == (["float32[input_dim0, 3]"], ["float32[input_dim0, 3]"])
    assert [(dim.min, dim.max) for dim in found.dims] == [(2, 5)]
