"""Cumulative operators of any length, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

INF, NAN = math.inf, math.nan
LENGTHS = [0, 1, 2, 3, 7, 8, 9]


@pytest.mark.parametrize("operator", [aten.cummax, aten.cummin], ids=str)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_running_extremes_and_their_places(operator, length, dim):
    torch.manual_seed(length)
    compare(operator.default, torch.randint(0, 4, (length, length)), dim)
    compare(operator.default, torch.randint(0, 4, (length, 2)).float(), dim)


@pytest.mark.parametrize("operator", [aten.cummax, aten.cummin], ids=str)
def test_running_extremes_end_at_nan(operator):
    x = torch.tensor([[INF, -INF, 1.0, NAN, 2.0, NAN], [-INF, -INF, INF, INF, 0.0, -0.0]])
    compare(operator.default, x, 1)
    compare(operator.default, x, 0)


@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.int8, torch.uint8, torch.int16, torch.float16, torch.float64],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("operator", [aten.cummax, aten.cummin], ids=str)
def test_running_extremes_of_all_types(operator, dtype):
    x = torch.tensor([0, 1, 1, 0, 127, 100])
    if dtype not in (torch.bool, torch.uint8):
        x = torch.cat([x, -x])
    compare(operator.default, x.to(dtype), 0)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dim", [0, -1])
def test_running_products(length, dim):
    torch.manual_seed(length)
    compare(aten.cumprod.default, torch.randn(length, length), dim)
    compare(aten.cumprod.default, torch.randint(-9, 9, (length, 3)), dim)
    compare(aten.cumprod.default, torch.randint(-9, 9, (length, 3)).to(torch.int32), dim)
    compare(aten.cumprod.default, torch.ones(length, 2, dtype=torch.bool), dim)
    compare(aten.cumprod.default, torch.randn(length, 2), dim, dtype=torch.float64)


def test_running_products_of_the_ends_of_float():
    compare(aten.cumprod.default, torch.tensor([1e30, 1e30, 0.0, INF, -1.0]), 0)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dim", [0, -1])
def test_running_logsumexp(length, dim):
    torch.manual_seed(length)
    compare(aten.logcumsumexp.default, torch.randn(length, 3) * 100, dim)


def test_running_logsumexp_of_infinities():
    x = torch.tensor([[-INF, -INF, 1.0, INF], [INF, -INF, 1.0, 2.0], [1.0, NAN, 2.0, INF]])
    compare(aten.logcumsumexp.default, x, 1)
    compare(aten.logcumsumexp.default, x, 0)


@pytest.mark.parametrize(
    "operator", [aten.cummax, aten.cummin, aten.cumprod, aten.logcumsumexp, aten.cumsum], ids=str
)
@pytest.mark.parametrize("dim", [0, -1])
def test_rank_0(operator, dim):
    compare(operator.default, torch.tensor(2.5), dim)


@pytest.mark.parametrize("dtype", [torch.int32, torch.bool, torch.uint8], ids=str)
def test_sums_of_rank_0_are_int64(dtype):
    compare(aten.cumsum.default, torch.tensor(1).to(dtype), 0)
    compare(aten.cumprod.default, torch.tensor(1).to(dtype), 0)
    compare(aten.cumsum.default, torch.tensor(1).to(dtype), 0, dtype=torch.float32)


def test_results_do_not_alias_their_input():
    x = torch.tensor([1.0])
    for operator in (aten.cumprod, aten.logcumsumexp):
        assert decompose(operator.default, x, 0).data_ptr() != x.data_ptr()
    assert decompose(aten.cummax.default, x, 0)[0].data_ptr() != x.data_ptr()
