"""Elementary functions at the ends of their ranges, in all types, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

INF, NAN = math.inf, math.nan

SIZES = [1e-30, 1e-10, 1e-6, 0.3, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 30.0, 88.0, 1e4, 1e7, 1e30]
X = torch.tensor([0.0, -0.0, *SIZES, *(-size for size in SIZES), INF, -INF, NAN])
MODERATE = [0.0, -0.0, 0.1, -0.1, 0.5, 1.0, -1.0, 2.0, -2.0, 3.0, -7.5, 1e4, INF, -INF, NAN]
Y = torch.tensor(MODERATE)[:, None].expand(-1, len(MODERATE)).contiguous()
Z = Y.T.contiguous()

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
UNARY = [aten.log10, aten.sinh, aten.asinh, aten.acosh, aten.atanh, aten.sinc]


@pytest.mark.parametrize("operator", [*UNARY, aten.log_sigmoid], ids=str)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_unary_functions_of_all_sizes(operator, dtype):
    x = X.to(dtype)
    if operator is aten.sinc:  # beyond, float32 has no digit of the angle left
        x = x[x.abs() < 40]
    rtol, atol = (1e-5, 1e-6) if dtype is torch.float32 else (None, None)
    compare(operator.default, x, rtol=rtol, atol=atol)


@pytest.mark.parametrize("operator", UNARY, ids=str)
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool], ids=str)
def test_unary_functions_of_integers_are_floating(operator, dtype):
    compare(operator.default, torch.tensor([0, 1, 1, 0]).to(dtype))


@pytest.mark.parametrize("operator", [*UNARY, aten.log_sigmoid, aten.signbit], ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)], ids=str)
def test_unary_functions_of_any_shape(operator, shape):
    compare(operator.default, torch.full(shape, 0.5))


@pytest.mark.parametrize("operator", [aten.sinh, aten.asinh, aten.atanh], ids=str)
def test_odd_functions_have_the_sign_of_a_negative_zero(operator):
    compare(operator.default, torch.tensor([0.0, -0.0, 1e-30, -1e-30]), signs=True)


@pytest.mark.parametrize(
    "operator",
    [
        aten.hypot.default, aten.atan2.default, aten.logaddexp.default, aten.logaddexp2.default,
        aten.copysign.Tensor, aten.fmax.default, aten.fmin.default, aten.floor_divide.default,
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_binary_functions_of_all_pairs(operator, dtype):
    compare(operator, Y.to(dtype), Z.to(dtype))


def test_hypot_does_not_overflow():
    compare(aten.hypot.default, torch.tensor([3e38, 1e-30, 0.0]), torch.tensor([1e38, 1e-30, 0.0]))


@pytest.mark.parametrize("operator", [aten.hypot, aten.fmax, aten.fmin, aten.logaddexp], ids=str)
def test_binary_functions_broadcast(operator):
    compare(operator.default, torch.randn(3, 1), torch.randn(4))
    compare(operator.default, torch.randn(()), torch.randn(0, 2))


@pytest.mark.parametrize("operator", [aten.fmax, aten.fmin, aten.atan2], ids=str)
def test_operands_are_promoted(operator):
    compare(operator.default, torch.tensor([1, -2, 0]), torch.tensor([0.5, NAN, -1.0]))
    compare(operator.default, torch.tensor([True, False]), torch.tensor([-3, 3]))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_angles_have_the_sign_of_zeros(dtype):
    compare(aten.atan2.default, Y[:5, :5].to(dtype), Z[:5, :5].to(dtype), signs=True)


@pytest.mark.parametrize("dtype", FLOATS[:2], ids=str)
def test_powers_of_all_pairs(dtype):
    compare(aten.pow.Tensor_Tensor, Y.to(dtype), Z.to(dtype), rtol=2e-3, atol=1e-6, signs=True)


@pytest.mark.parametrize("exponent", [-1, -2, -3, -0.5, -1.0, -2.5])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_powers_by_negative_numbers(exponent, dtype):
    x = torch.tensor([*MODERATE[:1], *MODERATE[2:13], NAN]).to(dtype)
    compare(aten.pow.Tensor_Scalar, x, exponent, rtol=1e-2, atol=1e-5)


@pytest.mark.parametrize("base", [0.0, -2.0, 1.0, -1.0, 0, -3])
def test_powers_of_numbers(base):
    exponent = torch.tensor([0.0, 1.0, -1.0, 2.0, 0.5, 3.0, INF, -INF, NAN])
    compare(aten.pow.Scalar, base, exponent)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_remainders_with_the_sign_of_the_dividend(dtype):
    rtol, atol = (1e-12, 1e-9) if dtype is torch.float64 else (None, None)
    compare(aten.fmod.Tensor, Y.to(dtype), Z.to(dtype), rtol=rtol, atol=atol)
    for divisor in (0.3, -0.3, 2, INF, NAN):
        compare(aten.fmod.Scalar, X.to(dtype).clamp(-1e4, 1e4), divisor, rtol=rtol, atol=atol)


@pytest.mark.parametrize("number", [5.0, -5.0, 7, 0.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_remainders_of_numbers(number, dtype):
    if dtype is torch.int64:
        compare(aten.remainder.Scalar_Tensor, number, torch.tensor([3, -3, 7]))
    else:
        compare(aten.remainder.Scalar_Tensor, number, torch.tensor([3.0, -0.3, INF, NAN, 0.0]))


@pytest.mark.parametrize("divisor", [0.1, -0.3, 2, 3.0, INF])
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_quotients_are_floored_exactly(divisor, dtype):
    x = torch.tensor([1.0, -1.0, 5.0, 7.5, -7.5, 0.3, 100.0, 0.0, -6.0, INF, NAN]).to(dtype)
    compare(aten.floor_divide.Scalar, x, divisor)
    compare(aten.div.Scalar_mode, x, divisor, rounding_mode="floor")
    compare(aten.div.Tensor_mode, x, torch.tensor(divisor).to(dtype), rounding_mode="floor")


@pytest.mark.parametrize("bounds", [(NAN, None), (None, NAN), (NAN, 1.0), (0.0, NAN)], ids=str)
def test_a_nan_bound_gives_nan(bounds):
    compare(aten.clamp.default, torch.tensor([1.0, -INF, NAN]), *bounds)
    compare(aten.clamp.default, torch.tensor([1, 2]), *bounds)
    assert decompose(aten.clamp.default, torch.tensor([1.0]), 0.0, 1.0) is NotImplemented


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.uint8, torch.bool], ids=str)
def test_signs_of_all_types(dtype):
    compare(aten.signbit.default, torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0])[:5].abs().to(dtype))
    if dtype.is_signed:
        compare(aten.signbit.default, torch.tensor([0.0, -0.0, 1.0, -1.0, -2.0]).to(dtype))


@pytest.mark.parametrize("sign", [1.0, -1.0, -0.0, 0.0, -INF])
def test_the_sign_of_a_number_is_copied(sign):
    compare(aten.copysign.Scalar, torch.tensor([1.0, -2.0, 0.0, NAN]), sign, signs=False)
    compare(aten.copysign.Scalar, torch.tensor([1, -2, 0]), sign, signs=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_mantissa_and_exponent_of_the_smallest_and_largest_numbers(dtype):
    info = torch.finfo(dtype)
    ends = [info.max, -info.max, info.tiny, info.smallest_normal / 8, info.eps, 1 - info.eps]
    x = torch.tensor([0.0, 1.0, -1.0, 2.0, 0.5, 3.0, *ends, INF, -INF, NAN], dtype=dtype)
    mantissa, exponent = decompose(aten.frexp.Tensor, x)
    wanted, _ = aten.frexp.Tensor(x)
    torch.testing.assert_close(mantissa, wanted, rtol=0, atol=0, equal_nan=True)
    finite = torch.isfinite(x)  # the exponent of the others is not specified
    torch.testing.assert_close(exponent[finite], aten.frexp.Tensor(x)[1][finite])


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64], ids=str)
def test_divisors_and_multiples(dtype):
    x = torch.tensor([0, 1, -1, 6, -12, 89, 35])[:, None].to(dtype)
    y = torch.tensor([0, 1, -1, 4, -8, 55, 21]).to(dtype)
    compare(aten.gcd.default, x, y)
    compare(aten.lcm.default, x.to(torch.int32), y.to(torch.int32))


def test_divisors_need_as_many_steps_as_neighbours_in_the_fibonacci_sequence():
    a, b = 1, 1
    while a + b < 2**63:
        a, b = b, a + b
    compare(aten.gcd.default, torch.tensor([b, a]), torch.tensor([a, b]))


@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("weights", ["none", "weight", "pos_weight", "both"])
def test_cross_entropy_of_logits(reduction, weights):
    torch.manual_seed(0)
    x, target = torch.randn(4, 3) * 100, torch.rand(4, 3)
    weight = torch.rand(4, 3) if weights in ("weight", "both") else None
    pos_weight = torch.rand(3) * 4 if weights in ("pos_weight", "both") else None
    compare(aten.binary_cross_entropy_with_logits.default, x, target, weight, pos_weight, reduction)


@pytest.mark.parametrize("operator", [aten.log10, aten.sinh, aten.logaddexp], ids=str)
def test_complex_numbers_are_left_to_others(operator):
    x = torch.ones(2, dtype=torch.complex64)
    arguments = (x, x) if operator is aten.logaddexp else (x,)
    assert decompose(operator.default, *arguments) is NotImplemented
