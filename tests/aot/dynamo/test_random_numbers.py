"""Random numbers of graphs: what is drawn before a call, in which order, shape and layout."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from pelton.aot.dynamo.random_numbers import Draws, draw_outside, dropout
from pelton.aot.spec.errors import UnsupportedOpError

aten = torch.ops.aten


def traced(function: Callable[..., Any], *args: Any, symbolic: bool = False) -> GraphModule:
    return make_fx(function, tracing_mode="symbolic" if symbolic else "fake")(*args)


def outside(
    function: Callable[..., Any], *args: Any, symbolic: bool = False
) -> tuple[GraphModule, Draws]:
    module, draws = draw_outside(traced(function, *args, symbolic=symbolic))
    assert draws is not None
    return module, draws


def names(module: GraphModule) -> list[str]:
    return [node.name for node in module.graph.nodes if node.op == "placeholder"]


def assert_drawn_as_by_eager(
    function: Callable[..., Any], *args: Any, eager: Callable[..., Any] | None = None
) -> None:
    """Compare a graph that is given its random numbers with the function itself, or another."""
    module, draws = outside(function, *args)
    torch.manual_seed(3)
    expected = (eager or function)(*args)
    torch.manual_seed(3)
    actual = torch.fx.Interpreter(module).run(*args, *draws(args))
    assert torch.equal(actual, expected)


def test_a_graph_without_random_numbers_is_given_back() -> None:
    module = traced(lambda x: x + 1, torch.ones(2))
    assert draw_outside(module) == (module, None)


def test_numbers_become_the_last_inputs_in_the_order_of_the_program() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return torch.rand_like(x) + torch.randn(2) * y + aten.bernoulli.p(x, 0.5)

    module = traced(function, torch.ones(2), torch.ones(2))
    before = str(module.graph)
    copied, draws = draw_outside(module)
    assert draws is not None
    assert names(copied) == ["x_1", "y_1", "drawn_1", "drawn_2", "drawn_3"]
    assert [draw.__name__ for draw, _, _ in draws.calls] == ["rand_like.default", "randn.default",
                                                            "bernoulli_"]  # fmt: skip
    assert str(module.graph) == before
    assert all("val" in n.meta for n in copied.graph.nodes if n.op == "placeholder")


def test_a_graph_without_inputs_gets_its_first() -> None:
    module, draws = outside(lambda: torch.rand(3) * 2)
    assert names(module) == ["drawn_1"]
    assert [tuple(number.shape) for number in draws([])] == [(3,)]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.rand_like(x) - torch.randn_like(x),
        lambda x: torch.randint_like(x, 10) + torch.randint_like(x, 2, 5),
        lambda x: torch.randperm(6) + x.sum(),
        lambda x: torch.normal(x, 2.0),
        lambda x: aten.uniform(x, 1.0, 2.0),
        lambda x: dropout(x, 0.5, True)[0],
        lambda x: torch.rand(2, 3, dtype=torch.float64) + x,
    ],
    ids=["like", "integers", "permutation", "mean", "uniform", "dropout", "sizes"],
)
def test_the_numbers_are_those_of_eager(function: Callable[..., Any]) -> None:
    assert_drawn_as_by_eager(function, torch.linspace(0, 1, 6).reshape(2, 3))


def test_numbers_lie_in_memory_as_in_eager() -> None:
    x = torch.zeros(3, 2).T
    assert_drawn_as_by_eager(lambda x: torch.rand_like(x), x)
    assert_drawn_as_by_eager(
        lambda x: dropout(x + 1, 0.5, True)[0],
        x,
        eager=lambda x: torch.native_dropout(x + 1, 0.5, True)[0],
    )


def test_dynamic_sizes_are_those_of_the_call() -> None:
    def function(x: Tensor, n: int) -> list[Tensor]:
        return [torch.rand_like(x), torch.rand(x.shape[0] * 2 + 1, n)]

    _, draws = outside(function, torch.zeros(4, 3), 5, symbolic=True)
    for rows, columns, n in ((4, 3, 5), (7, 2, 1), (0, 3, 0)):
        shapes = [tuple(number.shape) for number in draws([torch.zeros(rows, columns), n])]
        assert shapes == [(rows, columns), (rows * 2 + 1, n)]


def test_numbers_that_depend_on_computed_values_are_refused_with_the_line() -> None:
    with pytest.raises(UnsupportedOpError, match="depend on computed values") as caught:
        draw_outside(traced(lambda x: torch.bernoulli(x * 2), torch.zeros(2)))
    assert caught.value.operators == ("aten.bernoulli.default",)


@pytest.mark.parametrize(("p", "draws"), [(0.0, False), (0.5, True)])
def test_attention_draws_only_where_it_drops(p: float, draws: bool) -> None:
    def attention(q: Tensor) -> Tensor:
        return aten._scaled_dot_product_efficient_attention(q, q, q, None, False, p)[0]

    module = traced(attention, torch.zeros(1, 2, 2, 4))
    if not draws:
        assert draw_outside(module) == (module, None)
        return
    with pytest.raises(UnsupportedOpError, match="random numbers among other results"):
        draw_outside(module)


@pytest.mark.parametrize(("p", "train"), [(0.5, False), (0.0, True), (0.0, None)])
def test_dropout_that_drops_nothing_gives_a_copy(p: float, train: bool | None) -> None:
    x = torch.arange(4.0)
    dropped, mask = dropout(x, p, train)
    assert torch.equal(dropped, x)
    assert dropped.data_ptr() != x.data_ptr()
    assert torch.equal(mask, torch.ones(4, dtype=torch.bool))


@pytest.mark.parametrize("p", [0.25, 1.0])
@pytest.mark.parametrize("train", [True, None])
def test_dropout_is_that_of_torch(p: float, train: bool | None) -> None:
    x = torch.linspace(-1, 1, 40).half()
    torch.manual_seed(1)
    expected = torch.native_dropout(x, p, True)
    torch.manual_seed(1)
    actual = dropout(x, p, train)
    assert torch.equal(actual[1], expected[1])
    torch.testing.assert_close(actual[0], expected[0])
