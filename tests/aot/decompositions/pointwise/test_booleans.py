"""Bool tensors act as truth values, not as integers of one bit."""

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

X = torch.tensor([True, False, True, False])
Y = torch.tensor([True, True, False, False])


def test_operators_on_bool_are_logical(check):
    check(
        {
            "and": lambda x, y: x & y,
            "or": lambda x, y: x | y,
            "xor": lambda x, y: x ^ y,
            "not": lambda x, y: ~x,
            "and True": lambda x, y: x & True,
            "bitwise": torch.bitwise_and,
            "sum": lambda x, y: x.sum(),
            "running sum": lambda x, y: x.cumsum(0),
            "all": lambda x, y: x.all(),
            "any": lambda x, y: (x & ~x).any(),
            "sorted": lambda x, y: x.sort()[0],
            "times": lambda x, y: x * y,
            "compared": lambda x, y: x < y,
            "rolled": lambda x, y: x.roll(1),
        },
        [X, Y],
    )


def test_bool_constants_compile(check):
    check(
        {
            "ones": lambda x: torch.ones(4, dtype=torch.bool) & x,
            "zeros": lambda x: torch.zeros(4, dtype=torch.bool) | x,
            "full": lambda x: torch.full((4,), True) & x,
            "like": lambda x: torch.full_like(x, True) & torch.ones_like(x),
            "new": lambda x: x.new_zeros(4) | x,
            "literal": lambda x: x & torch.tensor([True, False, True, True]),
            "triangle": lambda x: torch.ones(4, 4, dtype=torch.bool).tril(),
        },
        [X],
    )


def test_bounds_of_bool_are_logical(check):
    check(
        {
            "at most": torch.clamp_max,
            "at least": torch.clamp_min,
            "at most an integer": lambda x, y: torch.clamp_max(x, torch.tensor([3, -1, 0, 1])),
            "at least a number": lambda x, y: torch.clamp_min(x, 0.5),
        },
        [X, Y],
    )


def test_true_is_one_among_numbers(check):
    check(
        {
            "angle": torch.atan2,
            "angle with float": lambda x, y: torch.atan2(x, y.to(torch.float16)),
            "float power": torch.float_power,
            "complex": lambda x, y: x.cfloat(),
            "times complex": lambda x, y: x * (y.float() + 2j),
        },
        [X, Y],
    )


def test_true_added_to_true_at_an_index_is_true(check):
    index = torch.tensor([0, 1, 0, 1])
    check(
        {
            "added": lambda x, y: x.index_add(0, index, y),
            "put": lambda x, y: x.index_put((index,), y, accumulate=True),
            "replaced": lambda x, y: x.index_put((torch.tensor([2, 3]),), y[:2]),
        },
        [X, Y],
    )


def test_any_number_but_zero_fills_with_true(check):
    check(
        {
            "masked": lambda x, y: x.masked_fill(y, 10),
            "masked by a fraction": lambda x, y: x.masked_fill(y, 0.5),
            "masked by zero": lambda x, y: x.masked_fill(y, 0),
            "full": lambda x, y: torch.full((4,), 10, dtype=torch.bool),
            "at an index": lambda x, y: x.index_fill(0, torch.tensor([1]), 10),
        },
        [X, Y],
    )


def test_scatters_of_bool_are_logical(check):
    index = torch.tensor([0, 0, 3, 0])
    reductions = ("sum", "prod", "amin", "amax")
    check(
        {
            "added": lambda x, y: x.scatter_add(0, index, y),
            "added by name": lambda x, y: x.scatter(0, index, True, reduce="add"),
            **{
                f"{reduction}, {'with' if own else 'without'} itself": (
                    lambda x, y, reduction=reduction, own=own: x.scatter_reduce(
                        0, index, y, reduction, include_self=own
                    )
                )
                for reduction in reductions
                for own in (True, False)
            },
        },
        [X, Y],
    )


BOOLS = [
    torch.tensor(values) for values in ([True, False, True, False], [True, True, False, False])
]
INTEGERS = torch.tensor([3, -1, 0, 12])


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bitwise_operators_promote_their_operands(name):
    packet = getattr(aten, name)
    x, y = BOOLS
    compare(packet.Tensor, x, y)
    compare(packet.Scalar, x, True)
    compare(packet.Tensor, x, INTEGERS)
    compare(packet.Tensor, INTEGERS.to(torch.int8), INTEGERS)
    compare(packet.Scalar, INTEGERS, 5)
    compare(packet.Scalar, x, 6)
    assert decompose(packet.Tensor, INTEGERS, INTEGERS) is NotImplemented


@pytest.mark.parametrize("name", ["__and__", "__or__", "__xor__"])
def test_operators_under_their_python_names(name):
    packet = getattr(aten, name)
    compare(packet.Tensor, INTEGERS, INTEGERS.flip(0))
    compare(packet.Scalar, BOOLS[0], False)


@pytest.mark.parametrize("name", ["clamp_max", "clamp_min"])
def test_bounds_of_bool_of_any_type(name):
    packet = getattr(aten, name)
    compare(packet.Tensor, *BOOLS)
    compare(packet.Tensor, BOOLS[0], INTEGERS)
    for bound in (0, 3, -2, 0.5):
        compare(packet.default, BOOLS[0], bound)


@pytest.mark.parametrize("value", [10, 0, 0.5, -1, 256])
def test_fills_of_bool_ask_whether_a_number_is_zero(value):
    x, mask = BOOLS
    compare(aten.masked_fill.Scalar, x, mask, value)
    compare(aten.full.default, [3, 0], value, dtype=torch.bool)
    compare(aten.full.default, [], value, dtype=torch.bool)
    compare(aten.full_like.default, x, value)


@pytest.mark.parametrize("shape", [[], [0], [2, 3]], ids=str)
def test_bool_constants_of_any_shape(shape):
    compare(aten.ones.default, shape, dtype=torch.bool)
    compare(aten.zeros.default, shape, dtype=torch.bool)
    compare(aten.full.default, shape, True)
    compare(aten.ones_like.default, torch.zeros(shape), dtype=torch.bool)
    compare(aten.zeros_like.default, torch.ones(shape, dtype=torch.bool))
    assert decompose(aten.ones.default, shape, dtype=torch.int64) is NotImplemented


@pytest.mark.parametrize("reduce", ["sum", "prod", "amin", "amax"])
@pytest.mark.parametrize("include_self", [True, False])
def test_reductions_of_bool_at_indices(reduce, include_self):
    index = torch.tensor([0, 0, 3, 0])
    compare(
        aten.scatter_reduce.two, BOOLS[0], 0, index, BOOLS[1], reduce, include_self=include_self
    )


def test_bool_sums_at_indices():
    index = torch.tensor([0, 0, 3, 0])
    compare(aten.scatter_add.default, BOOLS[0], 0, index, BOOLS[1])
    compare(aten.index_put.default, BOOLS[0], [index], BOOLS[1], True)
    compare(aten.index_put.default, BOOLS[0], [index], torch.tensor(True), True)
