"""Maxima over windows with their places, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

GEOMETRIES = [(5, 3, 3, 0), (4, 3, 2, 0), (2, 3, 2, 1), (3, 4, 4, 2), (9, 3, 2, 1), (7, 3, 5, 1)]


def samples(rank, size):
    torch.manual_seed(0)
    return torch.randn(2, 3, *[size] * rank)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_maxima_and_places_with_windows_beyond_the_end(rank, geometry):
    size, *amounts = geometry
    operator = getattr(aten, f"max_pool{rank}d_with_indices").default
    arguments = [[amount] * rank for amount in amounts]
    compare(operator, samples(rank, size) - 5, *arguments, [1] * rank, True)


@pytest.mark.parametrize("dilation", [[2, 2], [3, 1]], ids=str)
def test_places_in_dilated_windows(dilation):
    operator = aten.max_pool2d_with_indices.default
    compare(operator, samples(2, 8), [3, 2], [7, 7], [1, 0], dilation, True)


def test_the_first_of_equal_elements_is_taken():
    x = torch.zeros(1, 1, 5)
    compare(aten.max_pool1d_with_indices.default, x, [3], [3])
    x = torch.tensor([[[1.0, math.nan, math.nan, 3.0]]])
    assert decompose(aten.max_pool1d_with_indices.default, x, [3], [3])[1].item() == 1


def test_windows_that_the_compiler_takes_are_left_alone():
    operator = aten.max_pool2d_with_indices.default
    assert decompose(operator, samples(2, 6), [2, 2]) is NotImplemented


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("output", [1, 2, 3, 4])
def test_fractional_windows(rank, output):
    operator = getattr(aten, f"fractional_max_pool{rank}d").default
    x, sizes = samples(rank, 6), [output] * rank
    for where in (0.0, 0.3, 0.999):
        compare(operator, x, [2] * rank, sizes, torch.full((2, 3, rank), where))
    compare(operator, x, [2] * rank, sizes, torch.rand(2, 3, rank))


@pytest.mark.parametrize("rank", [2, 3])
def test_fractional_windows_of_samples_without_a_batch(rank):
    operator = getattr(aten, f"fractional_max_pool{rank}d").default
    compare(operator, samples(rank, 6)[0], [3] * rank, [2] * rank, torch.rand(1, 3, rank))


def test_fractional_windows_of_unequal_sizes():
    operator = aten.fractional_max_pool2d.default
    compare(operator, torch.randn(1, 2, 5, 8), [2, 3], [4, 2], torch.rand(1, 2, 2))


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_adaptive_windows_of_several_sizes(rank, size):
    operator = getattr(aten, f"adaptive_max_pool{rank}d").default
    for output in ([2, 3, 4], [5, 1, 7]):
        compare(operator, samples(rank, size), output[:rank])
        compare(operator, samples(rank, size).round(), output[:rank])  # several are equal


def test_adaptive_windows_of_one_size_are_left_alone():
    operator = aten.adaptive_max_pool2d.default
    assert decompose(operator, samples(2, 6), [2, 3]) is NotImplemented


def test_compiled_adaptive_windows(check):
    pool = torch.nn.functional.adaptive_max_pool2d
    check({"uneven": lambda x: pool(x, (7, 3), True)}, [torch.randn(1, 2, 10, 4)])
    sizes = {axis: torch.export.Dim.DYNAMIC for axis in (2, 3)}
    calls = [[torch.randn(1, 2, *size)] for size in ((9, 8), (1, 1), (2, 3))]
    check({"dynamic": lambda x: pool(x, (2, 1))}, *calls, dynamic=[sizes])
