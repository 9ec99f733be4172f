"""Comparisons with integers and of a tensor with itself, after the rewrite."""

import pytest
import torch

from tests.aot.decompositions.rewritten import rewritten, targets

aten = torch.ops.aten

X = torch.tensor([1.0, torch.nan, torch.inf, -2.0])


@pytest.mark.parametrize("name", ["eq", "ge", "gt", "le", "lt", "ne"])
def test_floats_are_compared_with_floats(name):
    module = rewritten(lambda x: getattr(torch, name)(x, 1), X)
    (node,) = module.graph.find_nodes(op="call_function", target=getattr(aten, name).Scalar)
    assert type(node.args[1]) is float
    torch.testing.assert_close(module(X)[0], getattr(torch, name)(X, 1))


def test_integers_are_compared_with_integers():
    module = rewritten(lambda x: x < 1, X.nan_to_num(0, 9).long())
    (node,) = module.graph.find_nodes(op="call_function", target=aten.lt.Scalar)
    assert type(node.args[1]) is int


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("ne", [aten.isnan.default]),
        *[(name, [aten.isnan.default, aten.logical_not.default]) for name in ("eq", "ge", "le")],
    ],
)
def test_a_comparison_with_itself_is_a_test_for_nan(name, wanted):
    function = getattr(torch, name)
    module = rewritten(lambda x: function(x, x), X)
    assert targets(module) == wanted
    torch.testing.assert_close(module(X)[0], function(X, X))


def test_two_tensors_and_integers_with_themselves_are_left_alone():
    assert targets(rewritten(lambda x, y: x == y, X, X + 1)) == [aten.eq.Tensor]
    assert targets(rewritten(lambda x: x == x, X.nan_to_num().long())) == [aten.eq.Tensor]


NUMBERS = [-1, 0, 1, 2, 0.5, 200, 300, True]
COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")


def test_bools_and_narrow_integers_are_compared_as_torch_does(check):
    programs = {}
    for name in COMPARISONS:
        for number in NUMBERS:
            programs[f"bool {name} {number}"] = lambda b, name=name, number=number: getattr(
                torch, name
            )(b, number)
        for dtype in (torch.uint8, torch.int8, torch.int16):
            programs[f"{dtype} {name}"] = lambda b, name=name, dtype=dtype: [
                getattr(torch, name)(b.to(dtype) * 3, number) for number in (-1, 3, 200, 65539)
            ]
        programs[f"bool {name} tensor"] = lambda b, name=name: [
            getattr(torch, name)(b, torch.tensor([-1, 0, 2])),
            getattr(torch, name)(torch.tensor([-1.0, 1.0, 0.5]), b),
            getattr(torch, name)(b, ~b),
        ]
    check(programs, [torch.tensor([True, False, True])])
