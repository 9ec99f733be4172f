"""Legalization of graphs of AOTAutograd: strides, attention, and what is decomposed first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule
from torch.fx.experimental.proxy_tensor import make_fx

from pelton.aot.dynamo.legalize import DECOMPOSED_FIRST, with_whole_attention, without_strides
from pelton.aot.spec.errors import UnsupportedOpError

aten = torch.ops.aten
flash = aten._scaled_dot_product_flash_attention_for_cpu


def traced(function: Callable[..., Any], *args: Any) -> GraphModule:
    module = make_fx(function, tracing_mode="fake")(*args)
    module.graph.eliminate_dead_code()
    module.recompile()
    return module


def run(module: GraphModule, *args: Any) -> Any:
    return torch.fx.Interpreter(module).run(*args)


def targets(module: GraphModule) -> list[str]:
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


# Strides


def test_views_become_reshapes_in_a_copy() -> None:
    module = traced(lambda x: aten.view(x, [4]) + 1, torch.zeros(2, 2))
    assert targets(without_strides(module)) == ["aten.reshape.default", "aten.add.Tensor"]
    assert targets(module)[0] == "aten.view.default"


def test_strides_of_a_tensor_that_lies_row_after_row_are_left() -> None:
    module = traced(lambda x: torch.as_strided(x, (2,), (2,)), torch.zeros(2, 2))
    assert targets(without_strides(module)) == ["aten.as_strided.default"]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.as_strided(x, (2,), (2,)),
        lambda x: torch.as_strided_copy(x, (2,), (2,)),
        lambda x: torch.as_strided_scatter(x, torch.zeros(2), (2,), (1,)),
    ],
    ids=["view", "copy", "scatter"],
)
def test_strides_of_a_tensor_that_lies_otherwise_are_refused(function: Any) -> None:
    module = traced(function, torch.zeros(3, 2).T)
    with pytest.raises(UnsupportedOpError, match="does not lie row after row") as caught:
        without_strides(module)
    assert caught.value.operators[0].startswith("aten.as_strided")


# Attention

Q = torch.randn(1, 2, 3, 4)
MASK = torch.randn(3, 3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"attn_mask": True},
        {"scale": 0.25},
        {"dropout_p": 0.0, "is_causal": True, "scale": 2.0},
    ],
    ids=["plain", "causal", "mask", "scale", "all"],
)
def test_attention_whose_result_alone_is_used_is_one_operator(options: dict[str, Any]) -> None:
    def attention(q: Tensor, mask: Tensor) -> Tensor:
        given = {"attn_mask": mask} if "attn_mask" in options else options
        return flash(q, q + 1, q * 2, **given)[0]

    module = traced(attention, Q, MASK)
    whole = with_whole_attention(module)
    found = [t for t in targets(whole) if "attention" in t or "getitem" in t]
    assert found == ["aten.scaled_dot_product_attention.default"]
    torch.testing.assert_close(run(whole, Q, MASK), run(module, Q, MASK))
    assert "getitem" in str(targets(module))


def test_positional_options_are_kept() -> None:
    module = traced(lambda q: flash(q, q + 1, q * 2, 0.0, True)[0], Q)
    torch.testing.assert_close(run(with_whole_attention(module), Q), run(module, Q))


def test_the_result_keeps_its_type_for_later_steps() -> None:
    whole = with_whole_attention(traced(lambda q: flash(q, q, q)[0].sum(), Q))
    (node,) = (n for n in whole.graph.nodes if "attention" in str(n.target))
    assert tuple(node.meta["val"].shape) == (1, 2, 3, 4)


def test_all_uses_of_the_result_are_replaced() -> None:
    def twice(q: Tensor) -> Tensor:
        found = flash(q, q, q)
        return found[0] + found[0].cos()

    module = traced(twice, Q)
    torch.testing.assert_close(run(with_whole_attention(module), Q), run(module, Q))


def test_attention_whose_sums_are_used_is_left() -> None:
    module = traced(lambda q: list(flash(q, q, q)), Q)
    assert with_whole_attention(module) is module


def test_other_attention_of_a_graph_is_left() -> None:
    def mixed(q: Tensor) -> list[Tensor]:
        return [flash(q, q, q)[0], *flash(q, q, q * 2)]

    whole = targets(with_whole_attention(traced(mixed, Q)))
    assert whole.count("aten.scaled_dot_product_attention.default") == 1
    assert whole.count("aten._scaled_dot_product_flash_attention_for_cpu.default") == 1


# Decompositions


@pytest.mark.parametrize(
    "operator", [aten.mish_backward.default, aten.silu_backward.default], ids=str
)
def test_what_is_decomposed_first_gives_the_same(operator: Any) -> None:
    gradient, x = torch.linspace(-1, 1, 5), torch.linspace(-3, 3, 5)
    actual = DECOMPOSED_FIRST[operator](gradient, x)
    torch.testing.assert_close(actual, operator(gradient, x))
