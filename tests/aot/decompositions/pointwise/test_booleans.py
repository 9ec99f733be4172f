"""Bool tensors act as truth values, not as integers of one bit."""

import torch

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
