"""Products of a vector and matrices of all ranks, beside eager torch."""

import pytest
import torch
import torch.nn.functional as F

from tests.aot.decompositions.eager import decompose

aten = torch.ops.aten
DYNAMIC = torch.export.Dim.DYNAMIC

PRODUCTS = {
    "rows of 3": lambda x, v, y, w: x @ v,
    "rows of 5": lambda x, v, y, w: x[None, :, None] @ v,
    "columns of 3": lambda x, v, y, w: v @ y,
    "columns of 5": lambda x, v, y, w: v @ y[None, :, None],
    "transposed": lambda x, v, y, w: x.mT @ w,
    "one feature": lambda x, v, y, w: F.linear(x, v),
    "one feature and a bias": lambda x, v, y, w: F.linear(x, v, w[0]),
}


def operands(batch, rows, inner, columns, dtype=torch.float32):
    torch.manual_seed(0)
    shapes = (batch, rows, inner), (inner,), (batch, inner, columns), (rows,)
    return [(torch.randn(shape) * 4).to(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [torch.float16, torch.int64, torch.uint8], ids=str)
def test_products_of_each_type(check, dtype):
    check(PRODUCTS, operands(2, 3, 4, 5, dtype))


@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (2, 3, 0, 4), (0, 2, 3, 4)], ids=str)
def test_products_of_small_sizes(check, sizes):
    check(PRODUCTS, operands(*sizes))


def test_products_of_sizes_that_vary(check):
    calls = [operands(*sizes) for sizes in [(2, 3, 4, 5), (1, 1, 1, 1), (3, 3, 3, 3), (1, 5, 4, 1)]]
    dynamic = [dict.fromkeys(range(x.dim()), DYNAMIC) for x in calls[0]]
    check({name: PRODUCTS[name] for name in ("rows of 3", "columns of 3")}, *calls, dynamic=dynamic)


def test_products_of_matrices_are_left_alone():
    x, v, y, _ = operands(2, 3, 4, 5)
    assert decompose(aten.matmul.default, x, y) is NotImplemented
    assert decompose(aten.matmul.default, v, y[0]) is NotImplemented
    assert decompose(aten.linear.default, x, y[0].mT) is NotImplemented
