"""torch's description of the structure around a captured program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch

from pelton.aot.capture.program import inputs_and_outputs
from pelton.aot.capture.programs.call_spec import call_spec, flat_entry, with_call_spec
from pelton.aot.capture.signature import signature_of_capture
from pelton.aot.capture.trace import capture, tracing_settings
from pelton.runtime.call.signature import ConstantSpec, Parameter, Signature

X = torch.ones(2, 3)


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclass
class Unknown:
    value: Any


def rebuilt(function: Any, *args: Any, **kwargs: Any) -> torch.export.ExportedProgram:
    captured = capture(function, args, kwargs)
    signature = signature_of_capture(captured, inputs_and_outputs(captured.program), "f")
    with tracing_settings():
        return with_call_spec(captured.program, signature)


def call(program: torch.export.ExportedProgram, *args: Any, **kwargs: Any) -> Any:
    with tracing_settings():
        return program.module()(*args, **kwargs)


def nested(x: Any, *rest: Any, factor: Any = 2, **named: Any) -> Any:
    total = x["a"] * factor + named["y"]
    return {"sum": total, "parts": [total + rest[0], None, "text"], "pair": Pair(total * 2, 3)}


def test_a_program_is_called_as_its_function() -> None:
    program = rebuilt(nested, {"a": X}, X * 3, factor=5, y=X)
    found = call(program, {"a": X * 2}, X * 3, factor=5, y=X)
    expected = nested({"a": X * 2}, X * 3, factor=5, y=X)
    assert torch.equal(found["sum"], expected["sum"])
    assert torch.equal(found["parts"][0], expected["parts"][0])
    assert found["parts"][1:] == [None, "text"]
    assert torch.equal(found["pair"].left, expected["pair"].left) and found["pair"].right == 3


def test_constants_before_and_between_inputs_have_their_places() -> None:
    def function(a: Any, x: Any, b: Any, y: Any) -> Any:
        return x * a + y * b

    program = rebuilt(function, 2, X, 3, X)
    assert torch.equal(call(program, 2, X, 3, X * 2), X * 8)


def test_parameters_stay_in_front_of_constants() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(2.0))

        def forward(self, mode: str, x: torch.Tensor) -> torch.Tensor:
            return x * self.scale if mode == "scale" else x

    assert torch.equal(call(rebuilt(Net(), "scale", X), "scale", X), X * 2)


def test_the_given_program_stays_as_it_is() -> None:
    captured = capture(nested, ({"a": X}, X), {"y": X})
    before = str(captured.program.graph)
    signature = signature_of_capture(captured, inputs_and_outputs(captured.program), "f")
    with tracing_settings():
        program = with_call_spec(captured.program, signature)
    assert str(captured.program.graph) == before and program is not captured.program


def test_a_container_that_torch_does_not_know_leaves_the_program_flat() -> None:
    captured = capture(lambda x: x.value + 1, (Unknown(X),), {})
    signature = signature_of_capture(captured, inputs_and_outputs(captured.program), "f")
    with tracing_settings():
        assert call_spec(signature) is None
        assert with_call_spec(captured.program, signature) is captured.program


def spec_of(tree: Any, count: int, result: Any = None) -> Any:
    parameter = Parameter("x", "POSITIONAL_OR_KEYWORD", tree)
    leaves = tuple(ConstantSpec(i) for i in range(count))
    with tracing_settings():
        return call_spec(Signature("f", (parameter,), leaves, result, ()))


@pytest.mark.parametrize(
    "tree, count, inputs",
    [
        (0, 1, (0,)),
        (None, 0, (None,)),
        (["tuple", []], 0, ()),
        (["list", [0, None, 1]], 2, (0, None, 1)),
        (["dict", [["a", 0], ["b", 1]]], 2, (0, 1)),
    ],
)
def test_leaves_of_the_arguments_in_the_order_of_torch(tree: Any, count: int, inputs: Any) -> None:
    found = spec_of(tree, count)
    assert found.inputs == inputs and found.outputs == (None,)


def test_an_order_of_leaves_that_torch_lacks_has_no_form() -> None:
    assert spec_of(["list", [1, 0]], 2) is None


def test_flat_programs_take_and_return_tuples() -> None:
    with tracing_settings():
        signature = flat_entry(2, 1).signature
        assert signature is not None
        assert signature.in_spec.num_leaves == 2 and signature.out_spec.num_leaves == 1
        assert signature.in_spec.unflatten([1, 2]) == ((1, 2), {})
