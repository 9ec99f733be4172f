"""Views over several dynamic sizes."""

import sympy
import torch

from pelton.aot import NamedDimension
from pelton.aot.decompositions.rewrites.views import Group, match

SHAPES = [(3, 5), (2, 7), (4, 2), (1, 4), (5, 3)]


def test_views_over_two_dynamic_sizes_keep_the_order(check):
    check(
        {
            "heads": lambda x: x.view(x.shape[0], x.shape[1], 2, 4).transpose(1, 2).contiguous(),
            "merged": lambda x: x.view(-1, 8) * 2,
            "tail": lambda x: x.reshape(x.shape[0], -1),
            "swapped": lambda x: x.reshape(x.shape[1], x.shape[0], 8),
            "product": lambda x: x.reshape(x.shape[0] * x.shape[1], 8).view(-1, 4),
            "shared": lambda x: (
                x.view(x.shape[0], x.shape[1], 2, 4)
                .transpose(1, 2)
                .reshape(x.shape[0] * 2, x.shape[1], 4)
            ),
            "ones": lambda x: x.view(x.shape[0], 1, x.shape[1], 1, 8),
            "flat": lambda x: x.view(-1).sum(),
        },
        *[[torch.randn(batch, length, 8)] for batch, length in SHAPES],
        dynamic=[{0: "batch", 1: NamedDimension("length", 2, 5, 64)}],
    )


def test_dimensions_are_matched_in_the_smallest_groups():
    b, n = sympy.symbols("b n", positive=True, integer=True)
    eight, two, four = (sympy.Integer(size) for size in (8, 2, 4))
    assert match([b, n, eight], [b, n, two, four]) == [
        Group(range(0, 1), range(0, 1)),
        Group(range(1, 2), range(1, 2)),
        Group(range(2, 3), range(2, 4)),
    ]
    assert match([b, n, eight], [n, b, eight]) == [
        Group(range(0, 2), range(0, 2)),
        Group(range(2, 3), range(2, 3)),
    ]
    assert match([b, n], [b * n, sympy.Integer(1)]) == [Group(range(0, 2), range(0, 2))]
