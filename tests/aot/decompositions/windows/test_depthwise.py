"""Depthwise convolutions of volumes, and transposed ones, beside eager torch."""

import pytest
import torch
from torch.nn import functional as F

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten
DYNAMIC = torch.export.Dim.DYNAMIC

TOLERANCE = {"rtol": 1e-4, "atol": 1e-5}
TRANSPOSED = {
    1: aten.conv_transpose1d.default,
    2: aten.conv_transpose2d.input,
    3: aten.conv_transpose3d.input,
}


def samples(rank, size, batch=2):
    return torch.randn(batch, 3, *[size + axis for axis in range(rank)])


@pytest.mark.parametrize("stride", [[1], [2, 1, 3]], ids=str)
@pytest.mark.parametrize("padding", [[0], [1, 0, 2]], ids=str)
@pytest.mark.parametrize("dilation", [[1], [2, 1, 1]], ids=str)
def test_volumes(stride, padding, dilation):
    for bias, kernel in ((None, (2, 3, 1)), (torch.randn(3), (1, 2, 2))):
        x, weight = samples(3, 3), torch.randn(3, 1, *kernel)
        steps = (stride, padding, dilation)
        compare(aten.conv3d.default, x, weight, bias, *steps, 3, **TOLERANCE)
        steps = [amounts * 3 if len(amounts) == 1 else amounts for amounts in steps]
        none = [0] * 3
        operator = aten.convolution.default
        compare(operator, x, weight, bias, *steps, False, none, 3, **TOLERANCE)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize(
    "steps", [(1, 0, 0, 1), (2, 1, 1, 1), (3, 0, 2, 2), (2, 0, 0, 1), (2, 2, 1, 1)], ids=str
)
def test_transposed(rank, size, steps):
    stride, padding, more, dilation = ([amount] * rank for amount in steps)
    x, weight, bias = samples(rank, size), torch.randn(3, 1, *[4, 3, 2][:rank]), torch.randn(3)
    if size == 1 and padding[0] == 2:
        pytest.skip("eager has no such result")
    compare(TRANSPOSED[rank], x, weight, bias, stride, padding, more, 3, dilation, **TOLERANCE)
    arguments = (stride, padding, dilation, True, more, 3)
    compare(aten.convolution.default, x, weight, bias, *arguments, **TOLERANCE)


def test_other_groups_are_left_alone():
    x = samples(3, 4)
    for weight, groups in ((torch.randn(6, 1, 2, 2, 2), 3), (torch.randn(3, 3, 2, 2, 2), 1)):
        assert decompose(aten.conv3d.default, x, weight, None, [1], [0], [1], groups) is (
            NotImplemented
        )


@pytest.mark.parametrize("dynamic", [False, True])
def test_compiled(check, dynamic):
    torch.manual_seed(0)
    weight, bias = torch.randn(4, 1, 3, 3, 3), torch.randn(4)
    flat = weight[:, :, 0]
    functions = {
        "volume": lambda x: F.conv3d(x, weight, bias, padding=1, groups=4),
        "transposed line": lambda x: F.conv_transpose1d(
            x[:, :, 0, 0], flat[:, :, 0], bias, 2, 1, groups=4
        ),
        "transposed picture": lambda x: F.conv_transpose2d(x[:, :, 0], flat, None, 2, 1, groups=4),
        "transposed volume": lambda x: F.conv_transpose3d(x, weight, bias, 2, 1, groups=4),
    }
    calls = [[torch.randn(2, 4, 3, 4, 5)]]
    if dynamic:
        calls += [[torch.randn(1, 4, 3, 2, 5)], [torch.randn(3, 4, 2, 5, 5)]]
    sizes = [dict.fromkeys((0, 2, 3, 4), DYNAMIC)] if dynamic else None
    check(functions, *calls, dynamic=sizes)
