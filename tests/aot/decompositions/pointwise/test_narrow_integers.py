"""Operators on one-byte integers, by way of wider ones, beside eager torch."""

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

VALUES = {
    torch.uint8: ([0, 1, 127, 128, 200, 255], [255, 3, 2, 128, 1, 7]),
    torch.int8: ([-128, -1, 0, 1, 100, 127], [127, -3, 2, -128, 1, 7]),
}
DTYPES = list(VALUES)

BINARY = [
    aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.maximum.default,
    aten.minimum.default, aten.eq.Tensor, aten.ge.Tensor, aten.gt.Tensor, aten.le.Tensor,
    aten.lt.Tensor, aten.ne.Tensor, aten.remainder.Tensor,
]  # fmt: skip
UNARY = [
    aten.any.default, aten.all.default, aten.amax.default, aten.amin.default, aten.exp.default,
    aten.log.default, aten.max.default, aten.min.default, aten.prod.default, aten.sigmoid.default,
    aten.sign.default, aten.sqrt.default, aten.sum.default, aten.argmax.default,
    aten.argmin.default,
]  # fmt: skip
ALONG = [
    aten.any.dim, aten.all.dim, aten.cummax.default, aten.cummin.default, aten.cumsum.default,
    aten.cumprod.default, aten.max.dim, aten.min.dim, aten.prod.dim_int, aten.sort.default,
]  # fmt: skip


def operands(dtype):
    return [torch.tensor(values).to(dtype) for values in VALUES[dtype]]


@pytest.mark.parametrize("operator", BINARY, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_binary_operators(operator, dtype):
    x, y = operands(dtype)
    compare(operator, x, y)
    compare(operator, x, torch.arange(1, 7))
    compare(operator, x, y.float())


@pytest.mark.parametrize("operator", UNARY, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_unary_operators(operator, dtype):
    x = operands(dtype)[0]
    compare(operator, x)
    compare(operator, x[2:3])


@pytest.mark.parametrize("operator", ALONG, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("dim", [0, -1])
def test_operators_along_a_dimension(operator, dtype, dim):
    x = operands(dtype)[0].reshape(3, 2)
    compare(operator, x, dim)


@pytest.mark.parametrize("operator", [aten.sort, aten.argsort, aten.cummax], ids=str)
def test_true_is_larger_than_false(operator):
    compare(operator.default, torch.tensor([False, True, True, False]), 0)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_matrix_products(dtype):
    x = operands(dtype)[0].reshape(2, 3)
    compare(aten.mm.default, x, x.T)
    compare(aten.matmul.default, x, x[0])
    compare(aten.dot.default, x[0], x[1])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_lists_and_choices(dtype):
    x, y = operands(dtype)
    compare(aten.cat.default, [x, y])
    compare(aten.cat.default, [x, y.to(torch.int64)])
    compare(aten.where.self, x > 1, x, y)
    compare(aten.clamp.default, x, 1, 100)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_results_of_a_narrow_type(dtype):
    compare(aten.sum.default, torch.arange(6), dtype=dtype)
    compare(aten.arange.start_step, 0, 5, 2, dtype=dtype)
    compare(aten.arange.start_step, 5, 0, -1, dtype=dtype)


def test_floats_become_unsigned_bytes_by_way_of_int32():
    x = torch.tensor([0.0, 0.9, 127.5, 128.0, 255.9])
    for operator in (aten._to_copy.default, aten.to.dtype):
        arguments = {"dtype": torch.uint8}
        compare(operator, x, **arguments)
    assert decompose(aten._to_copy.default, x, dtype=torch.int8) is NotImplemented


def test_wider_integers_are_left_alone():
    x = torch.arange(4)
    assert decompose(aten.add.Tensor, x, x) is NotImplemented
    assert decompose(aten.amax.default, x, [0]) is NotImplemented


def test_sums_in_a_type_that_is_asked_for():
    aten = torch.ops.aten
    for dtype in (torch.int32, torch.int64, torch.float32, torch.int16):
        for x in (torch.full((4, 40), 100, dtype=t) for t in (torch.int8, torch.uint8)):
            compare(aten.sum.default, x, dtype=dtype)
            compare(aten.sum.dim_IntList, x, [1], dtype=dtype)
            compare(aten.cumsum.default, x, 1, dtype=dtype)
            compare(aten.prod.dim_int, x[:, :2], 1, dtype=dtype)


def test_bounds_beyond_the_type_wrap_as_in_torch():
    x = torch.arange(4, dtype=torch.uint8)
    compare(aten.clamp.default, x, -64, 64)
    compare(aten.clamp.default, x, min=-64)
    compare(aten.clamp_min.default, x, -5)
    compare(aten.clamp_max.default, x, -254)
    compare(aten.clamp.default, x.to(torch.int8), -1, 2)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_filled(dtype):
    x, _ = operands(dtype)
    for value in (7, -3, 2.0):
        compare(aten.fill.Scalar, x, value)
    compare(aten.zero.default, x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("other", [torch.int64, torch.uint8, torch.float64, torch.bool], ids=str)
def test_an_operand_without_dimensions_changes_the_kind_of_the_type_only(dtype, other):
    x, _ = operands(dtype)
    number = torch.tensor(1, dtype=other)
    for operator in (aten.add.Tensor, aten.mul.Tensor, aten.maximum.default, aten.eq.Tensor):
        compare(operator, x, number)
        compare(operator, number, x)
        compare(operator, x[0], number)
