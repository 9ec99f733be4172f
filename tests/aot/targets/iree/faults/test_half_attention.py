"""Attention on processors is compiled as products and a softmax: the numbers are those of torch."""

import math

import pytest
import torch
import torch.nn.functional as F

from pelton import aot, runtime

BATCH = aot.NamedDimension("batch", 1, 2, 4)
LENGTH = aot.NamedDimension("length", 1, 7, 64)
BATCH_OF_HEADS = torch.export.Dim("heads", min=2, max=9)
PLACES = torch.export.Dim("places", min=2, max=64)
SIZES = [(1, 1), (2, 7), (3, 33), (4, 64)]


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float32, 1e-5), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)],
)
def test_attention_of_any_length(dtype, tolerance, tmp_path):
    def attend(x, seen):
        heads = x.unflatten(2, (2, 8)).transpose(1, 2)
        causal = F.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        masked = F.scaled_dot_product_attention(
            heads, heads, heads, attn_mask=seen[:, None, None, :], scale=0.3
        )
        return causal, masked

    specs = [aot.InputInfo((BATCH, LENGTH, 16), dtype), aot.InputInfo((BATCH, LENGTH), torch.bool)]
    aot.export(attend, args=specs).compile(tmp_path / "a.vmfb")
    exe = runtime.load(tmp_path / "a.vmfb")
    torch.manual_seed(0)
    for batch, length in SIZES:
        x, seen = torch.randn(batch, length, 16), torch.rand(batch, length) > 0.3
        seen[0] = False  # a row that sees nothing
        x = x.to(dtype)
        wanted = attend(x.float(), seen)
        for given, expected in zip(exe(x, seen), wanted, strict=True):
            torch.testing.assert_close(
                given.float(), expected.nan_to_num(0.0), rtol=tolerance, atol=tolerance
            )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("sizes", [None, {0: BATCH_OF_HEADS, 1: PLACES}], ids=["static", "dynamic"])
def test_narrow_types_are_as_exact_as_eager_for_large_scores(dtype, sizes):
    """Scores of 100 were off by a third of a unit where the scale is no power of two."""

    def attend(q, k, v, mask):
        plain = F.scaled_dot_product_attention(q, k, v)
        return plain, F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    torch.manual_seed(0)
    inputs = [(torch.rand(4, 6, 8) * 18 - 9).to(dtype) for _ in range(3)]
    inputs.append(torch.randn(4, 6, 6).to(dtype))
    varying = sizes and [*[sizes] * 3, {0: BATCH_OF_HEADS, 1: PLACES, 2: PLACES}]
    out = aot.export(attend, args=tuple(inputs), dynamic_shapes=varying)
    exe = runtime.load(bytes(out.compile(None).map_memory()))
    exact = attend(*(x.double() for x in inputs))
    for given, eager, wanted in zip(exe(*inputs), attend(*inputs), exact, strict=True):
        assert given.dtype is dtype
        assert (given - wanted).abs().max() <= 1.1 * (eager - wanted).abs().max()


def test_large_scores_do_not_overflow(tmp_path):
    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)

    inputs = [
        torch.randn(1, 2, 16, 8) * 60,
        torch.randn(1, 2, 16, 8) * 60,
        torch.randn(1, 2, 16, 8),
    ]
    aot.export(attend, args=inputs).compile(tmp_path / "a.vmfb")
    result = runtime.load(tmp_path / "a.vmfb")(*inputs)
    assert math.isfinite(result.abs().max())
    torch.testing.assert_close(result, attend(*inputs), rtol=1e-4, atol=1e-4)
