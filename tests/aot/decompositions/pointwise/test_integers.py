"""Integer arithmetic is exact, whatever the width and the signs."""

import pytest
import torch
import torch.nn.functional as F

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

BINARY = {
    "floor division": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "truncated division": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "floored division": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "fmod": torch.fmod,
    "true division": lambda x, y: x / y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "and a number": lambda x, y: x & 5,
    "maximum": torch.maximum,
    "less": lambda x, y: x < y,
    "choice": lambda x, y: torch.where(x > y, x, y),
    "by 3": lambda x, y: x // 3,
    "modulo 3": lambda x, y: x % 3,
    "times 2": lambda x, y: x * 2,
    "negated": lambda x, y: -x,
    "squared": lambda x, y: x**2,
    "fifth power": lambda x, y: x**5,
    "sum": lambda x, y: x.sum(),
    "product": lambda x, y: y.prod(),
    "largest": lambda x, y: x.amax(),
    "where largest": lambda x, y: x.argmax(),
    "sorted": lambda x, y: x.sort()[0],
    "as float": lambda x, y: x.float() * 0.5,
    "with float": lambda x, y: x * 1.5,
    "with int64": lambda x, y: x + torch.arange(6),
    "shifted": lambda x, y: x >> 1,
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8])
def test_signed_arithmetic_is_that_of_torch(check, dtype):
    x = torch.tensor([-7, 6, -1, 0, -6, 100], dtype=dtype)
    y = torch.tensor([2, -3, 2, 5, 3, 7], dtype=dtype)
    check(BINARY, [x, y])


def test_unsigned_bytes_are_never_sign_extended(check):
    x = torch.tensor([200, 6, 255, 0, 129, 100], dtype=torch.uint8)
    y = torch.tensor([2, 3, 2, 5, 200, 7], dtype=torch.uint8)
    check(BINARY, [x, y])


def test_int64_beyond_the_floats_stays_exact(check):
    x = torch.tensor([2**62 + 1, -(2**62) - 1, 2**53 + 1, -7])
    check(
        {
            "floor division": lambda x: x // 7,
            "negated": lambda x: -x,
            "remainder": lambda x: x % 7,
            "fmod": lambda x: torch.fmod(x, 7),
            "compared": lambda x: x > 2**53,
        },
        [x],
    )


def test_powers_of_integer_tensors_wrap_as_in_torch(check):
    x = torch.tensor([2, -3, 5, -1, 0, 1])
    y = torch.tensor([3, 2, 70, 5, 0, 100])
    check({"power": lambda x, y: x**y, "of two": lambda x, y: 2**y}, [x, y])


def test_means_of_integer_windows_are_truncated(check):
    torch.manual_seed(0)
    check(
        {
            "of 1": lambda x: F.avg_pool1d(x[0, 0, 0], 3),
            "of 2": lambda x: F.avg_pool2d(x[0], 2, 1, 1, True, False),
            "of 2, divided": lambda x: F.avg_pool2d(x[0], 3, 2, 1, True, divisor_override=4),
            "of 3": lambda x: F.avg_pool3d(x, 2),
            "of 3, divided": lambda x: F.avg_pool3d(x, 2, 1, divisor_override=3),
        },
        [torch.randint(-20, 20, (1, 2, 5, 6, 7))],
    )


SIGNED = [torch.int8, torch.int16, torch.int32, torch.int64]
DIVIDENDS = [-128, -127, -7, -1, 0, 1, 6, 127]
DIVISORS = [-128, -7, -2, 1, 2, 3, 127]
QUOTIENTS = (aten.floor_divide.default, aten.fmod.Tensor)


@pytest.mark.parametrize("dtype", SIGNED, ids=str)
def test_quotients_of_all_signs(dtype):
    x, y = torch.tensor(DIVIDENDS)[:, None].to(dtype), torch.tensor(DIVISORS).to(dtype)
    for operator in QUOTIENTS:
        compare(operator, x, y)
    compare(aten.div.Tensor_mode, x, y, rounding_mode="floor")
    for divisor in DIVISORS[1:]:
        compare(aten.floor_divide.Scalar, x, divisor)
        compare(aten.fmod.Scalar, x, divisor)
        compare(aten.div.Scalar_mode, x, divisor, rounding_mode="trunc")
        compare(aten.div.Scalar_mode, x, divisor, rounding_mode="floor")


def test_quotients_of_unsigned_bytes():
    x, y = torch.tensor([0, 1, 127, 128, 200, 255]), torch.tensor([1, 2, 3, 127, 200, 255])
    x, y = x[:, None].to(torch.uint8), y.to(torch.uint8)
    for operator in QUOTIENTS:
        compare(operator, x, y)
    compare(aten.div.Tensor_mode, x, y, rounding_mode="floor")


def test_quotients_of_mixed_types():
    x, y = torch.tensor(DIVIDENDS), torch.tensor([[3], [-2]], dtype=torch.int16)
    for operator in QUOTIENTS:
        compare(operator, x, y)
    compare(aten.div.Tensor_mode, x, y, rounding_mode="trunc")
    assert decompose(aten.div.Tensor_mode, x, x, rounding_mode="trunc") is NotImplemented
    assert decompose(aten.div.Tensor_mode, x, y, rounding_mode=None) is NotImplemented


def test_quotients_of_int64_beyond_float64():
    x = torch.tensor([2**63 - 1, -(2**63), 2**53 + 1, -(2**62) - 1])
    for divisor in (3, -7, 2**40 + 1):
        compare(aten.floor_divide.Scalar, x, divisor)
        compare(aten.fmod.Scalar, x, divisor)


@pytest.mark.parametrize("dtype", [*SIGNED, torch.uint8], ids=str)
@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 8, 31])
def test_powers_by_numbers_wrap(dtype, exponent):
    x = torch.tensor([0, 1, 2, 3, 5, 100]).to(dtype)
    compare(aten.pow.Tensor_Scalar, x, exponent)
    compare(aten.neg.default, x)


@pytest.mark.parametrize("dtype", [*SIGNED, torch.uint8], ids=str)
def test_powers_by_tensors_wrap(dtype):
    base, exponent = torch.tensor([0, 1, 2, 3, 5, 100]), torch.tensor([0, 1, 2, 7, 30, 126, 127])
    compare(aten.pow.Tensor_Tensor, base[:, None].to(dtype), exponent.to(dtype))
    compare(aten.pow.Scalar, 3, exponent.to(dtype))


def test_powers_by_negative_exponents_are_zero_but_for_ones():
    base, exponent = torch.tensor([1, -1, 2, -3, 7]), torch.tensor([-1, -2, -3, -64])
    compare(aten.pow.Tensor_Tensor, base[:, None], exponent)


def test_powers_of_bool():
    x = torch.tensor([True, False])[:, None]
    compare(aten.pow.Tensor_Scalar, x, 3)
    compare(aten.pow.Tensor_Tensor, x, torch.tensor([0, 2]))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0)], ids=str)
def test_arithmetic_of_any_shape(shape):
    x = torch.full(shape, 7)
    compare(aten.floor_divide.Scalar, x, 2)
    compare(aten.pow.Tensor_Tensor, x, x)
    compare(aten.neg.default, x)


def test_floats_are_left_to_others():
    x = torch.ones(2)
    assert decompose(aten.neg.default, x) is NotImplemented
    assert decompose(aten.pow.Tensor_Scalar, x, 2) is NotImplemented


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool], ids=str)
def test_integers_are_clamped_between_numbers_of_another_type(dtype):
    x = torch.tensor([3, 0, 1]).to(dtype)
    for bounds in ((-2.5, 2.5), (0.5, 2), (None, 0.5), (1.5, None)):
        compare(torch.ops.aten.clamp.default, x, *bounds)
    compare(torch.ops.aten.clamp_min.default, x, 1.5)
    compare(torch.ops.aten.clamp_max.default, x, 1.5)
    compare(torch.ops.aten.clamp_max.default, x.to(torch.int8), 1.5)
