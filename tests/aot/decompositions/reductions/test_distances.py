"""Distances between rows, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare

aten = torch.ops.aten

NORMS = [0.0, 0.5, 1.0, 2.0, 3.0, math.inf]


@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_distances_of_all_pairs(p, rows):
    torch.manual_seed(0)
    x, y = torch.randn(rows, 4), torch.randn(3, 4)
    compare(aten._cdist_forward.default, x, y, p, None, rtol=1e-4, atol=1e-4)
    compare(aten._cdist_forward.default, x, x, p, 2, rtol=1e-4, atol=1e-4)
    compare(aten._pdist_forward.default, x, p, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("p", NORMS)
def test_the_norm_of_a_difference(p):
    compare(aten.dist.default, torch.randn(2, 3), torch.randn(3), p)


def test_distances_of_batches():
    x, y = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    compare(aten._cdist_forward.default, x, y, 2.0, None, rtol=1e-4, atol=1e-5)
    compare(aten._cdist_forward.default, x, y[:1].expand(2, 5, 4), 1.0, None)
