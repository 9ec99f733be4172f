"""Tensors resized with an antialiasing filter, beside eager torch."""

import pytest
import torch
from torch.nn import functional as F

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

OPERATORS = [aten._upsample_bilinear2d_aa.default, aten._upsample_bicubic2d_aa.default]
TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
@pytest.mark.parametrize("size", [[1, 1], [2, 3], [4, 5], [7, 9]], ids=str)
@pytest.mark.parametrize("align_corners", [True, False])
def test_resizes_to_a_size(operator, size, align_corners):
    torch.manual_seed(0)
    for shape in ((4, 5), (1, 1), (16, 3)):
        compare(operator, torch.randn(2, 3, *shape), size, align_corners, **TOLERANCE)


@pytest.mark.parametrize("operator", OPERATORS, ids=str)
def test_resizes_by_factors_and_of_other_types(operator):
    x = torch.rand(2, 3, 10, 8)
    compare(operator, x, [6, 12], False, 0.65, 1.5, **TOLERANCE)
    compare(operator, x.double(), [6, 12], False, rtol=1e-6, atol=1e-6)
    assert decompose(operator, x.to(torch.uint8), [6, 12], False) is NotImplemented


def test_compiled_resizes_of_sizes_that_vary(check):
    functions = {
        mode: lambda x, mode=mode: F.interpolate(x, (4, 7), mode=mode, antialias=True)
        for mode in ("bilinear", "bicubic")
    }
    calls = [[torch.rand(1, 2, *size)] for size in ((10, 9), (4, 7), (1, 1), (30, 2))]
    check(functions, *calls, dynamic=[dict.fromkeys((2, 3), torch.export.Dim.DYNAMIC)])
