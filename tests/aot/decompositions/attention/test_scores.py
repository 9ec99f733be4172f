"""Attention scores: scale, causal order and masks, against softmax of torch's attention."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from pelton.aot.decompositions.attention.scores import attention_scores, scale_of

Q, K = torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8)


def scores(query: Tensor = Q, key: Tensor = K, **options: Any) -> Tensor:
    given = {"is_causal": False, "mask": None, **options}
    return attention_scores(query, key, given.pop("scale", 1.0), **given)


@pytest.mark.parametrize(
    ("size", "scale", "expected"),
    [(16, None, 0.25), (16, 0.0, 0.0), (1, None, 1.0), (4, -2.0, -2.0)],
)
def test_the_scale_is_that_of_the_head_unless_one_is_given(
    size: int, scale: float | None, expected: float
) -> None:
    assert scale_of(torch.zeros(2, size), scale) == expected


def test_scores_are_the_scaled_products() -> None:
    torch.testing.assert_close(scores(scale=0.5), 0.5 * (Q @ K.mT))


@pytest.mark.parametrize(("queries", "keys"), [(4, 5), (5, 3), (1, 4), (3, 0)])
def test_a_causal_query_sees_the_keys_up_to_its_own_index(queries: int, keys: int) -> None:
    found = scores(torch.zeros(2, queries, 8), torch.zeros(2, keys, 8), is_causal=True)
    expected = torch.full((queries, keys), -math.inf).triu(1)
    assert torch.equal(found, expected.expand(2, -1, -1))


def test_a_mask_of_bools_hides_what_is_false() -> None:
    mask = torch.tensor([True, False, True, True, False])
    found = scores(mask=mask)
    assert torch.equal(found.isinf(), ~mask.expand_as(found))
    torch.testing.assert_close(found[..., mask], (Q @ K.mT)[..., mask])


@pytest.mark.parametrize("shape", [(4, 5), (1, 1, 4, 1), (2, 3, 4, 5)], ids=str)
def test_a_mask_of_values_is_added_as_it_is_broadcast(shape: tuple[int, ...]) -> None:
    mask = torch.randn(shape)
    torch.testing.assert_close(scores(mask=mask), Q @ K.mT + mask)


@pytest.mark.parametrize("kind", ["bool", "values"])
def test_causal_order_and_a_mask_hold_together(kind: str) -> None:
    seen = torch.rand(4, 5) > 0.3
    mask = seen if kind == "bool" else torch.zeros(4, 5).masked_fill(~seen, -math.inf)
    found = scores(is_causal=True, mask=mask)
    assert torch.equal(found[0, 0].isfinite(), seen & torch.ones(4, 5, dtype=torch.bool).tril())


@pytest.mark.parametrize("causal", [False, True])
def test_the_softmax_of_scores_is_torchs_attention(causal: bool) -> None:
    v = torch.randn(2, 3, 5, 6)
    scale = scale_of(Q, None)
    actual = scores(scale=scale, is_causal=causal).softmax(-1) @ v
    expected = torch.nn.functional.scaled_dot_product_attention(Q, K, v, is_causal=causal)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_the_element_type_is_kept(dtype: torch.dtype) -> None:
    found = scores(Q.to(dtype), K.to(dtype), scale=0.5, is_causal=True)
    assert found.dtype is dtype
