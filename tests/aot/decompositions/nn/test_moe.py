"""Histograms of experts and their grouped products, beside eager torch."""

import pytest
import torch

from pelton.aot.decompositions.nn.moe import entries_of_loaded_libraries, grouped_mm
from tests.aot.decompositions.eager import compare

aten = torch.ops.aten


@pytest.mark.parametrize("bins", [1, 4, 7])
@pytest.mark.parametrize("bounds", [(0, 0), (0, 4), (-1, 2)], ids=str)
def test_counts_of_equal_bins(bins, bounds):
    x = torch.tensor([[0.0, 1.0, 1.5], [3.9, 4.0, -1.0]])
    compare(aten.histc.default, x, bins, *bounds)


def test_counts_of_equal_elements():
    compare(aten.histc.default, torch.full((4,), 2.0), 3)


@pytest.mark.parametrize("ends", [[2, 3, 6], [0, 0, 6], [6, 6, 6], [1, 2, 4]], ids=str)
def test_rows_are_multiplied_with_the_matrix_of_their_group(ends):
    torch.manual_seed(0)
    x, matrices = torch.randn(6, 4), torch.randn(3, 4, 5)
    found = grouped_mm(x, matrices, torch.tensor(ends, dtype=torch.int32))
    wanted, start = torch.zeros(6, 5), 0
    for group, end in enumerate(ends):
        wanted[start:end] = x[start:end] @ matrices[group]
        start = end
    torch.testing.assert_close(found, wanted)


def test_other_forms_are_left_alone():
    x = torch.ones(2, 3, 4)
    assert grouped_mm(x, x) is NotImplemented
    assert grouped_mm(x[0], x) is NotImplemented


def test_operators_of_libraries_that_are_not_loaded_have_no_entry():
    known = hasattr(torch.ops.transformers, "grouped_mm_fallback")
    assert bool(entries_of_loaded_libraries()) is known
