"""Convolutions with sizes that vary."""

import pytest
import torch
from torch.nn import functional as F

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten


@pytest.mark.parametrize("batch", [1, 2])
def test_groups_of_pictures_of_a_dynamic_size(check, batch):
    weight, bias = torch.linspace(-1, 1, 12 * 2 * 9).view(12, 2, 3, 3), torch.linspace(-1, 1, 12)
    check(
        {
            "groups": lambda x: F.conv2d(x, weight, bias, stride=2, padding=1, groups=4),
            "as traced by AOTAutograd": lambda x: torch.convolution(
                x, weight, bias, [1, 1], [1, 1], [1, 1], False, [0, 0], 4
            ),
            "depthwise": lambda x: F.conv2d(x, weight[:8, :1], padding=2, groups=8),
        },
        *[[torch.randn(batch, 8, *size)] for size in ((6, 7), (3, 12), (9, 4))],
        dynamic=[{2: "height", 3: "width"}],
    )


@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_kernels_of_an_even_size_are_padded_at_the_end(check):
    calls = [[torch.randn(1, 2, 9), torch.randn(3, 2, kernel, 4)] for kernel in (3, 2, 1, 4, 2)]
    check(
        {
            "line": lambda x, w: F.conv1d(x, w[..., 0], padding="same"),
            "dilated": lambda x, w: F.conv1d(x, w[..., 0], padding="same", dilation=3),
            "picture": lambda x, w: F.conv2d(x[:, :, None], w, padding="same"),
            "fixed": lambda x, w: F.conv1d(x, w[:, :, 0], padding="same"),
        },
        *calls,
        dynamic=[None, {2: torch.export.Dim.AUTO}],
    )  # fmt: skip


GEOMETRIES = [
    # size, kernel, stride, padding, dilation
    (5, 3, 3, 0, 1), (4, 3, 2, 0, 1), (6, 3, 4, 0, 2), (2, 3, 2, 1, 1), (3, 5, 4, 2, 1),
    (4, 2, 5, 1, 3),
]  # fmt: skip
EXACT = [(3, 3, 1, 0, 1), (3, 3, 2, 1, 1), (9, 3, 2, 0, 1), (1, 1, 1, 0, 1), (5, 3, 1, 0, 2)]


@pytest.mark.parametrize("dimensions", [1, 2, 3])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_a_single_window_of_a_longer_input(dimensions, geometry):
    size, kernel, stride, padding, dilation = geometry
    x, weight = torch.randn(2, 4, *[size] * dimensions), torch.randn(6, 2, *[kernel] * dimensions)
    steps = [[amount] * dimensions for amount in (stride, padding, dilation)]
    operator = getattr(aten, f"conv{dimensions}d").default
    compare(operator, x, weight, torch.randn(6), *steps, 2, rtol=1e-4, atol=1e-4)
    none = [0] * dimensions
    compare(aten.convolution.default, x, weight, None, *steps, False, none, 2, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("geometry", EXACT, ids=str)
def test_convolutions_that_the_compiler_takes_are_left_alone(geometry):
    size, kernel, *steps = geometry
    x, weight = torch.randn(1, 2, size), torch.randn(3, 2, kernel)
    steps = [[amount] for amount in steps]
    assert decompose(aten.conv1d.default, x, weight, None, *steps) is NotImplemented


def test_only_the_dimension_with_one_window_is_cut():
    x, weight = torch.randn(1, 2, 4, 9), torch.randn(3, 2, 3, 3)
    compare(aten.conv2d.default, x, weight, None, [2, 2], [0, 1], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "conv3d"])
def test_samples_without_a_batch(name):
    rank = int(name[4])
    x, weight = torch.randn(2, *[5] * rank), torch.randn(3, 2, *[3] * rank)
    compare(getattr(aten, name).default, x, weight, None, rtol=1e-4, atol=1e-4)
    compare(getattr(aten, name).padding, x, weight, None, [1] * rank, "same", rtol=1e-4, atol=1e-4)


def test_transposed_convolutions_are_left_alone():
    x, weight = torch.randn(1, 2, 4), torch.randn(2, 3, 3)
    steps = [[3], [0], [1]]
    answer = decompose(aten.convolution.default, x, weight, None, *steps, True, [0], 1)
    assert answer is NotImplemented
