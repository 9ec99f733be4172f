"""Reductions of half-precision tensors accumulate in float32."""

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

CASES = {
    "sum": (aten.sum.default, ()),
    "sum of rows": (aten.sum.dim_IntList, ([1], True)),
    "mean": (aten.mean.default, ()),
    "mean of columns": (aten.mean.dim, ([0],)),
    "running sum": (aten.cumsum.default, (-1,)),
    "norm": (aten.linalg_vector_norm.default, (2,)),
    "logsumexp": (aten.logsumexp.default, ([0],)),
    "layer norm": (aten.layer_norm.default, ([600],)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_reductions_are_those_of_float32(name, dtype):
    torch.manual_seed(0)
    operator, args = CASES[name]
    x = torch.rand(3, 600).to(dtype)
    result = decompose(operator, x, *args)
    assert result.dtype is dtype
    wanted = operator(x.float(), *args).to(dtype)
    torch.testing.assert_close(result, wanted, rtol=0, atol=0)


def test_a_sum_does_not_stop_at_the_precision_of_its_type():
    assert decompose(aten.sum.default, torch.ones(4096, dtype=torch.bfloat16)) == 4096


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_half_result_of_a_wider_tensor_is_accumulated_in_float32(dtype):
    x = torch.rand(4, 5)
    compare(aten.sum.default, x, dtype=dtype, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
def test_wider_types_are_left_alone(dtype):
    assert decompose(aten.mean.dim, torch.ones(3, 2).to(dtype), [0]) is NotImplemented


def test_a_half_tensor_summed_in_float32_stays_float32():
    x = torch.rand(5).half()
    assert decompose(aten.sum.default, x, dtype=torch.float32) is NotImplemented
