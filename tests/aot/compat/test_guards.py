"""Contracts of torch's guards on sizes, and which of them a trace of ours has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
from torch import Tensor, nn
from torch.export import Dim

from pelton.aot.compat.guards import origins_of, traced_guards
from pelton.aot.compat.symbolic import backed_size_oblivious
from tests.contracts import contract


class Program(nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def environment_of(function: Callable[[Tensor], Tensor], *shape: int) -> Any:
    """Trace a function with a dynamic first size; return torch's environment of sizes."""
    shapes = ({0: Dim.AUTO},)
    with backed_size_oblivious(True), torch.no_grad():
        program = torch.export.export(
            Program(function), (torch.ones(shape),), dynamic_shapes=shapes, strict=False
        )
    (given,) = [node for node in program.graph.nodes if node.op == "placeholder"]
    return given.meta["val"].fake_mode.shape_env


def guards(function: Callable[[Tensor], Tensor], *shape: int) -> list[Any]:
    return [guard.expr for guard in environment_of(function, *shape).guards]


def holds_at_one(guard: Any) -> bool:
    return guard.subs(dict.fromkeys(guard.free_symbols, 1)) != sympy.false


def to_picture(x: Tensor) -> Tensor:
    tokens = x.transpose(1, 2).reshape(x.shape[0], 3, 4, 4)
    return torch.conv2d(tokens, torch.ones(2, 3, 3, 3))


def assign(x: Tensor) -> Tensor:
    made = torch.zeros(x.shape[0], 4)
    made[:, 1:3] = x
    return made


def origin(operator: str, stack_trace: str) -> tuple[str, str]:
    return operator, stack_trace


CASES = [(to_picture, (2, 16, 3)), (assign, (3, 2))]


@pytest.mark.parametrize(("function", "shape"), CASES)
@contract("FakeTensorMode.dispatch, ShapeEnv.evaluate_expr", breaks="batches of 1")
def test_kernels_ask_about_layouts_without_guards(function: Any, shape: tuple[int, ...]) -> None:
    assert not all(map(holds_at_one, guards(function, *shape)))
    with traced_guards(origin):
        assert all(map(holds_at_one, guards(function, *shape)))


@contract("ShapeEnv.evaluate_expr", breaks="the line of a constraint in messages")
def test_a_guard_of_the_program_is_noted_with_its_origin() -> None:
    with traced_guards(origin):
        environment = environment_of(lambda x: x + 1 if x.shape[0] > 3 else x, 5, 2)
    assert len(environment.guards) == len(origins_of(environment))
    assert set(origins_of(environment).values()) == {("", "")}


@contract("FakeTensorMode.dispatch", breaks="the operator of a constraint in messages")
def test_a_guard_of_a_kernel_is_noted_with_its_operator() -> None:
    with traced_guards(origin):
        environment = environment_of(lambda x: x.reshape(-1, 2, 3), 6, 2)
    assert ("aten.view.default", "") in origins_of(environment).values()


def test_a_fake_kernel_of_a_custom_operator_has_its_guards() -> None:
    @torch.library.custom_op("guards_test::squeezed", mutates_args=())
    def squeezed(x: Tensor) -> Tensor:
        return x.squeeze(0).clone()

    @squeezed.register_fake
    def _(x: Tensor) -> Tensor:
        return x.new_empty(x.shape[1:] if x.shape[0] == 1 else x.shape)

    with traced_guards(origin):
        (guard, *_) = guards(squeezed, 3, 2)
    assert not holds_at_one(guard)


def test_torch_is_left_as_it_was() -> None:
    before = guards(assign, 3, 2)
    with pytest.raises(KeyError), traced_guards(origin):
        raise KeyError
    assert guards(assign, 3, 2) == before != []
    assert not origins_of(environment_of(assign, 3, 2))
