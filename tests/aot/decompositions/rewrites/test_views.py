"""Views over several dynamic sizes."""

import pytest
import sympy
import torch

from pelton.aot import NamedDimension
from pelton.aot.decompositions.rewrites.views import Group, match
from tests.aot.decompositions.rewritten import rewritten, targets

aten = torch.ops.aten

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


VIEWS = {
    "heads": lambda x: x.reshape(x.shape[0], x.shape[1], 2, 4),
    "merged": lambda x: x.reshape(-1, 8),
    "tail": lambda x: x.reshape(x.shape[0], -1),
    "swapped": lambda x: x.reshape(x.shape[1], x.shape[0], 8),
    "ones": lambda x: x.reshape(x.shape[0], 1, x.shape[1], 1, 8),
    "flat": lambda x: x.reshape(-1),
    "split": lambda x: x.reshape(x.shape[0] * x.shape[1] * 2, 4),
    "the same": lambda x: x.reshape(x.shape),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_become_flatten_and_unflatten(name):
    dims = (torch.export.Dim("batch", min=2), torch.export.Dim("length", min=2))
    module = rewritten(VIEWS[name], torch.randn(3, 5, 8), dynamic=(dict(enumerate(dims)),))
    assert not {aten.view.default, aten.reshape.default} & {*targets(module)}
    for batch, length in ((3, 5), (2, 7), (4, 4), (8, 2)):
        x = torch.randn(batch, length, 8)
        torch.testing.assert_close(module(x)[0], VIEWS[name](x))


def test_static_views_are_left_alone():
    assert targets(rewritten(lambda x: x.view(6, 4), torch.randn(3, 8))) == [aten.view.default]


def test_sizes_that_do_not_match_are_one_group():
    a, b, c = sympy.symbols("a b c", positive=True, integer=True)
    assert match([a, b], [c]) == [Group(range(0, 2), range(0, 1))]
    assert match([], []) == []
