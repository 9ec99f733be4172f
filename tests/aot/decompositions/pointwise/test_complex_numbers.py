"""Complex arithmetic from real and imaginary parts, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

INF, NAN = math.inf, math.nan
DTYPES = [torch.complex64, torch.complex128]
PLAIN = [1 + 2j, -3 + 0.5j, 0.25 - 4j, -1 - 1j, 2 + 0j, 0 + 3j]
AXES = [complex(4, 0.0), complex(-4, 0.0), complex(-4, -0.0), complex(0, 9), complex(0, -9), 0j]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_arithmetic_of_all_operands(name, dtype):
    packet = getattr(aten, name)
    x, y = torch.tensor(PLAIN, dtype=dtype), torch.tensor(PLAIN[::-1], dtype=dtype)
    real = torch.tensor([2.0, -3.0, 0.5, 1.0, -1.0, 4.0])
    if name != "mul":
        compare(packet.Tensor, x, y, nested=True)
    compare(packet.Tensor, x, real, nested=True)
    compare(packet.Tensor, real, x, nested=True)
    compare(packet.Tensor, x, real.to(torch.int32), nested=True)
    for number in (2, -0.5, 1 + 2j, 3j):
        compare(packet.Scalar, x, number, nested=True)
        compare(packet.Scalar, real, complex(number), nested=True)


@pytest.mark.parametrize("alpha", [2, -0.5])
def test_sums_of_multiples(alpha):
    x, y = torch.tensor(PLAIN[:3]), torch.tensor(PLAIN[3:])
    compare(aten.add.Tensor, x, y, alpha=alpha)
    compare(aten.sub.Tensor, x, y, alpha=alpha)


def test_quotients_do_not_overflow():
    x, y = torch.tensor([1e30 + 1e30j, 1e-30j]), torch.tensor([1e30 - 1e30j, 1e-30 + 1e-30j])
    compare(aten.div.Tensor, x, y)


def test_arithmetic_broadcasts():
    compare(aten.add.Tensor, torch.tensor(PLAIN)[:, None], torch.tensor([1.0, 2.0]))
    compare(aten.div.Tensor, torch.tensor(PLAIN), torch.tensor(2 - 1j))


@pytest.mark.parametrize(
    "operator",
    [
        aten.abs, aten.angle, aten.cos, aten.exp, aten.log, aten.neg, aten.sin, aten.sqrt,
        aten.conj_physical, aten._conj_physical,
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_functions(operator, dtype):
    compare(operator.default, torch.tensor(PLAIN, dtype=dtype), nested=True)
    compare(operator.default, torch.tensor(PLAIN[0], dtype=dtype), nested=True)
    compare(operator.default, torch.zeros(0, dtype=dtype), nested=True)


@pytest.mark.parametrize("operator", [aten.sqrt, aten.log, aten.angle, aten.abs], ids=str)
def test_functions_on_their_branch_cuts(operator):
    compare(operator.default, torch.tensor(AXES), nested=True)


def test_magnitudes_do_not_overflow():
    parts = [(3e38, 1e30), (1e-30, 1e-30), (INF, INF), (-INF, 1.0), (INF, NAN), (NAN, 0.0)]
    compare(aten.abs.default, torch.tensor([complex(*pair) for pair in parts]), nested=True)


def test_roots_do_not_overflow():
    compare(aten.sqrt.default, torch.tensor([3e38 + 0j, complex(-3e38, 1e30)]), nested=True)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 8, 9, 0.5, 2.5, -1, -2.0])
def test_powers(exponent):
    x = torch.tensor([*PLAIN, 1e-3j])
    compare(aten.pow.Tensor_Scalar, x, exponent, nested=True, rtol=1e-4, atol=1e-4)


def test_powers_of_zero():
    for exponent in (0, 1, 3, 2.5):
        compare(aten.pow.Tensor_Scalar, torch.zeros(2, dtype=torch.complex64), exponent,
                nested=True)  # fmt: skip


def test_angles_of_real_numbers():
    compare(aten.angle.default, torch.tensor([1.0, -1.0, 0.0, -INF, NAN]))
    compare(aten.angle.default, torch.tensor([3, -3, 0]))
    compare(aten.angle.default, torch.tensor([True, False]))


def test_polar_coordinates_broadcast():
    compare(aten.polar.default, torch.tensor([[1.0], [2.0]]), torch.tensor([0.0, 1.0, -3.0]))


@pytest.mark.parametrize("wanted", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize(
    "given", [torch.bool, torch.uint8, torch.int64, torch.float32, torch.complex64], ids=str
)
def test_conversions_to_complex(given, wanted):
    if given is wanted:
        assert decompose(aten._to_copy.default, torch.ones(2).to(given), dtype=wanted) is (
            NotImplemented
        )
    else:
        compare(aten._to_copy.default, torch.tensor([0, 1, 1]).to(given), dtype=wanted)


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("wanted", [torch.float32, torch.float64, torch.int64], ids=str)
def test_conversions_to_real(wanted):
    compare(aten._to_copy.default, torch.tensor(PLAIN), dtype=wanted)


def test_the_real_part_of_real_numbers():
    x = torch.tensor([1.0, -2.0])
    torch.testing.assert_close(decompose(aten.real.default, x), x)


def test_reductions_are_those_of_the_parts():
    x = torch.tensor(PLAIN).reshape(2, 3)
    compare(aten.sum.default, x)
    compare(aten.sum.dim_IntList, x, [1], True)
    compare(aten.mean.default, x)
    compare(aten.mean.dim, x, [0])
    compare(aten.cumsum.default, x, -1)
    compare(aten.sum.default, x, dtype=torch.complex128)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "cos", "abs"])
def test_real_numbers_are_left_to_others(name):
    assert decompose(getattr(aten, name).default, torch.ones(2)) is NotImplemented
