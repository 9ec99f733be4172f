"""Activations with the options that the compiler refuses, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten


@pytest.mark.parametrize("lambd", [0.5, 0.0, 2])
def test_softshrink_at_its_threshold(lambd):
    x = torch.tensor([0.0, 0.5, -0.5, 0.6, -0.6, 3.0, -math.inf, math.inf, math.nan])
    compare(aten.softshrink.default, x, lambd)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_log_softmax_casts_before_it_computes(dim):
    x = torch.randn(3, 4).half() * 100
    compare(aten.log_softmax.int, x, dim, torch.float32)
    assert decompose(aten.log_softmax.int, x, dim) is NotImplemented


@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (2, 4, 4), (2, 4, 3, 4), (0, 4, 2)], ids=str)
@pytest.mark.parametrize("slopes", [1, 4])
def test_prelu_has_one_slope_for_each_channel(shape, slopes):
    if slopes == 4 and len(shape) < 2:
        pytest.skip("has no channels")
    x = torch.linspace(-2, 2, math.prod(shape)).reshape(shape)
    compare(aten.prelu.default, x, torch.tensor([0.1, 0.2, -0.3, math.nan])[:slopes])
