"""Sizes computed through floats: exact quotients at all sizes, or none."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from pelton.aot.decompositions.rewrites.symfloat_quotients import (
    bounds,
    lowest_value,
    quotient_of,
)
from tests.aot.decompositions.rewritten import graph_of

N = torch.export.Dim("n", min=2, max=1000)


def float_node(function, dim=N):
    """Return the node of the float from which `function` computes a size."""
    module = graph_of(
        lambda x: torch.ones(function(x.shape[0])), torch.ones(7), dynamic=({0: dim},)
    )
    nodes = [
        node for node in module.graph.nodes if isinstance(node.meta.get("val"), torch.SymFloat)
    ]
    return nodes[-1]


FACTORS = [0.5, 0.3, 1.5, 2.0, 1 / 3, 0.1]


@pytest.mark.parametrize("factor", FACTORS)
@pytest.mark.parametrize("rounding", [np.floor, np.ceil], ids=["floor", "ceil"])
def test_scaled_sizes_are_exact_quotients(factor, rounding):
    function = math.floor if rounding is np.floor else math.ceil
    quotient = quotient_of(float_node(lambda n: function(n * factor) + 2), rounding)
    if quotient is None:  # the float itself is not exact at some size
        assert any(
            function(n * factor) != function(n * Fraction(factor).limit_denominator(1 << 12))
            for n in range(2, 1001)
        )
        return
    for n in range(2, 1001):
        exact = Fraction(n * quotient.factor, quotient.divisor)
        assert function(exact) == function(n * factor)


@pytest.mark.parametrize("divisor", [2, 3, 7.0])
def test_true_quotients_of_sizes(divisor):
    quotient = quotient_of(float_node(lambda n: math.floor(n / divisor) + 2), np.floor)
    assert quotient is not None
    for n in range(2, 1001):
        assert n * quotient.factor // quotient.divisor == math.floor(n / divisor)


def test_powers_of_floats_have_no_quotient():
    node = float_node(lambda n: math.floor((n / 3) ** 2) + 1, torch.export.Dim.AUTO)
    assert quotient_of(node, np.floor) is None


def test_ranges_of_numbers():
    node = float_node(lambda n: math.floor(n * 0.5) + 1)
    assert lowest_value(node) == 1.0
    module = graph_of(lambda x: torch.ones(x.shape[0] * 2), torch.ones(7), dynamic=({0: N},))
    (size,) = module.graph.find_nodes(op="call_function", target=torch.ops.aten.sym_size.int)
    assert bounds(size) == (2, 1000)
