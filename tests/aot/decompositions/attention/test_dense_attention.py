"""Attention with dynamic batch and length, and with masks that hide whole rows."""

import pytest
import torch
import torch.nn.functional as F

from tests.aot.decompositions.eager import compare, decompose

ATTENTION = torch.ops.aten.scaled_dot_product_attention.default

SHAPES = [(3, 5), (2, 7), (4, 1), (1, 4), (5, 3), (1, 1)]
AXES = {0: "batch", 1: "length"}


def _inputs():
    torch.manual_seed(0)
    return [[torch.randn(batch, length, 8)] for batch, length in SHAPES]


@pytest.mark.parametrize("batch_first", [True, False])
def test_multihead_attention_is_right_at_all_shapes(check, batch_first):
    module = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first).eval()
    check({"attention": lambda x: module(x, x, x, need_weights=False)[0]}, *_inputs(),
          dynamic=[AXES])  # fmt: skip


def test_encoder_layer_is_right_at_all_shapes(check):
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    check({"layer": layer}, *_inputs(), dynamic=[AXES])


def _attend(x, **options):
    heads = x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2)
    return F.scaled_dot_product_attention(heads, heads, heads, **options)


def test_rows_that_see_nothing_are_finite_as_in_torch(check):
    lowest = torch.finfo(torch.float32).min

    def rows(seen, low):
        return torch.where(seen, 0.0, low)[:, None, :, None].expand(-1, -1, -1, seen.shape[1])

    torch.manual_seed(0)
    calls = [[torch.randn(b, n, 8), torch.rand(b, n) > 0.4] for b, n in SHAPES]
    check(
        {
            "causal": lambda x, seen: _attend(x, is_causal=True),
            "bool": lambda x, seen: _attend(
                x, attn_mask=seen[:, None, :, None].expand(-1, -1, -1, x.shape[1])
            ),
            "keys": lambda x, seen: _attend(x, attn_mask=seen[:, None, None, :]),
            "smallest": lambda x, seen: _attend(x, attn_mask=rows(seen, lowest)),
            "infinite": lambda x, seen: _attend(x, attn_mask=rows(seen, -torch.inf)),
        },
        *calls,
        dynamic=[AXES, AXES],
    )


def test_attention_of_unequal_ranks_and_groups(check):
    torch.manual_seed(0)
    query, key, mask = torch.randn(2, 4, 6, 8), torch.randn(2, 2, 6, 8), torch.rand(6, 6) > 0.3
    check(
        {
            "groups": lambda q, k, m: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
            "no batch": lambda q, k, m: F.scaled_dot_product_attention(*[q[0, 0]] * 3),
            "one mask": lambda q, k, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m),
            "one batch": lambda q, k, m: F.scaled_dot_product_attention(q, q[:1], q[:1]),
            "double": lambda q, k, m: F.scaled_dot_product_attention(*[q.double()] * 3, m),
        },
        [query, key, mask],
    )


def operands(*sizes, dtype=torch.float64):
    torch.manual_seed(0)
    return [torch.randn(*size, dtype=dtype) for size in sizes]


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_float64_is_computed_by_the_definition(is_causal, scale):
    query, key, value = operands((2, 3, 4, 8), (2, 3, 5, 8), (2, 3, 5, 6))
    options = {"is_causal": is_causal, "scale": scale}
    compare(ATTENTION, query, key, value, rtol=1e-9, atol=1e-9, **options)


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_masks_that_hide_a_row(kind):
    query, key, value = operands((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4))
    mask = torch.rand(3, 5) > 0.5
    mask[1] = False
    if kind == "float":
        mask = torch.where(mask, 0.5, -torch.inf).double()
    compare(ATTENTION, query, key, value, mask, rtol=1e-9, atol=1e-9)


def test_groups_of_heads_in_float64():
    query, key, value = operands((2, 4, 3, 8), (2, 2, 3, 8), (2, 2, 3, 8))
    compare(ATTENTION, query, key, value, enable_gqa=True, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "sizes",
    [
        [(3, 4), (5, 4), (5, 4)], [(2, 3, 4), (5, 4), (5, 4)], [(3, 4), (2, 5, 4), (2, 5, 4)],
        [(2, 1, 3, 4), (1, 6, 5, 4), (5, 4)],
    ],
    ids=str,
)  # fmt: skip
def test_operands_are_brought_to_one_rank(sizes):
    operand = operands(*sizes, dtype=torch.float32)
    compare(ATTENTION, *operand, rtol=1e-4, atol=1e-5)


def test_a_mask_of_another_rank_is_unsqueezed():
    query, key, value = operands((2, 3, 4), (2, 5, 4), (2, 5, 4), dtype=torch.float32)
    compare(ATTENTION, query, key, value, torch.rand(3, 5) > 0.2, rtol=1e-4, atol=1e-5)


def test_attention_that_the_compiler_takes_is_left_alone():
    query, key, value = operands(*[(2, 2, 3, 4)] * 3, dtype=torch.float32)
    assert decompose(ATTENTION, query, key, value) is NotImplemented
