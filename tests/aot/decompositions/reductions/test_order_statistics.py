"""Order statistics and searches, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare

aten = torch.ops.aten

INF, NAN = math.inf, math.nan
DTYPES = [torch.float32, torch.float64, torch.int64, torch.int32, torch.uint8, torch.int8]


def distinct(*shape, dtype=torch.float32):
    torch.manual_seed(0)
    return (torch.randperm(math.prod(shape)) + 1).reshape(shape).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("keepdim", [True, False])
def test_each_order_statistic(dtype, dim, keepdim):
    x = distinct(4, 5, dtype=dtype)
    for k in range(1, x.shape[dim] + 1):
        compare(aten.kthvalue.default, x, k, dim, keepdim)
    compare(aten.median.dim, x, dim, keepdim)
    compare(aten.nanmedian.dim, x, dim, keepdim)
    compare(aten.mode.default, x // 4, dim, keepdim)


@pytest.mark.parametrize("shape", [(1,), (2,), (3, 1), (1, 3)], ids=str)
def test_medians_of_few_elements(shape):
    x = distinct(*shape)
    compare(aten.median.default, x)
    compare(aten.nanmedian.default, x)
    compare(aten.median.dim, x, -1)


@pytest.mark.parametrize("operator", [aten.median, aten.nanmedian, aten.mode], ids=str)
def test_rank_0(operator):
    x = torch.tensor(3.0)
    if operator is aten.mode:
        compare(operator.default, x)
    else:
        compare(operator.dim, x, 0, True)
        compare(operator.default, x)
    compare(aten.kthvalue.default, x, 1)


def test_medians_beside_nan():
    x = torch.tensor([[1.0, 3.0, 2.0, 5.0], [4.0, -INF, INF, 0.0]])
    missing = torch.tensor([[1.0, NAN, 2.0, 5.0], [4.0, NAN, 3.0, NAN]])
    compare(aten.nanmedian.dim, x, 1)
    compare(aten.nanmedian.dim, missing, 1)
    compare(aten.nanmedian.default, missing)
    values = torch.full((2,), NAN)
    torch.testing.assert_close(aten.median.dim(missing, 1)[0], values, equal_nan=True)
    compare(aten.median.dim, missing[:1], 1)


def test_the_most_frequent_element_is_the_smallest_and_its_last_place():
    compare(aten.mode.default, torch.tensor([[3, 1, 1, 3, 2], [0, 0, 0, 0, 0]]))
    compare(aten.mode.default, torch.tensor([[3.0, -INF, -INF, 3.0], [INF, INF, 1.0, 2.0]]))


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize("out_int32", [True, False])
def test_searches_in_sorted_sequences(right, out_int32):
    options = {"right": right, "out_int32": out_int32}
    sequence = torch.tensor([-INF, 1.0, 2.0, 2.0, 5.0])
    values = torch.tensor([[2.0, -INF, 0.0], [6.0, INF, 1.0]])
    compare(aten.searchsorted.Tensor, sequence, values, **options)
    compare(aten.searchsorted.Scalar, sequence, 2.0, **options)
    compare(aten.searchsorted.Tensor, torch.stack([sequence, sequence + 1]), values, **options)
    compare(aten.bucketize.Tensor, values, sequence, **options)
    compare(aten.searchsorted.Tensor, sequence[:0], values, **options)
    compare(aten.searchsorted.Tensor, sequence, values[:, :0], **options)


def test_searches_from_a_side_and_by_an_order():
    sequence, values = torch.tensor([5, 1, 3]), torch.tensor([1, 3, 4])
    sorter = torch.tensor([1, 2, 0])
    for side in ("left", "right"):
        compare(aten.searchsorted.Tensor, sequence, values, side=side, sorter=sorter)


@pytest.mark.parametrize("operator", [aten.max, aten.min], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8], ids=str)
def test_extremes_of_rank_0(operator, dtype):
    for dim in (0, -1):
        compare(operator.dim, torch.tensor(3).to(dtype), dim)
