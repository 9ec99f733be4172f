"""Pooling with a single window, divisors and no batch, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

GEOMETRIES = [
    # size, kernel, stride, padding
    (5, 3, 3, 0), (4, 3, 2, 0), (2, 3, 2, 1), (3, 4, 4, 2), (1, 1, 2, 0), (7, 3, 5, 1),
]  # fmt: skip


def samples(rank, size):
    torch.manual_seed(0)
    return torch.randn(2, 3, *[size] * rank)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("geometry", [*GEOMETRIES, (9, 3, 2, 1)], ids=str)
def test_maxima_with_windows_beyond_the_end(rank, geometry):
    size, kernel, stride, padding = geometry
    x = samples(rank, size) - 5  # negative: padding must not count as 0
    operator = getattr(aten, f"max_pool{rank}d").default
    arguments = [[amount] * rank for amount in (kernel, stride, padding)]
    compare(operator, x, *arguments, [1] * rank, True)
    if size + 2 * padding - kernel < stride and size + 2 * padding > kernel:
        compare(operator, x, *arguments)


@pytest.mark.parametrize("dilation", [2, 3])
@pytest.mark.parametrize("ceil_mode", [True, False])
def test_maxima_of_dilated_windows(dilation, ceil_mode):
    compare(aten.max_pool2d.default, samples(2, 8), [3, 2], [7, 7], [1, 0], [dilation], ceil_mode)


def test_maxima_of_nan_and_infinities():
    x = torch.tensor([[[1.0, math.nan, -math.inf, -math.inf, 2.0, math.inf, 7.0]]])
    compare(aten.max_pool1d.default, x, [2], [2], [0], [1], True)


def test_maxima_that_the_compiler_takes_are_left_alone():
    x = samples(2, 6)
    assert decompose(aten.max_pool2d.default, x, [2, 2]) is NotImplemented
    assert decompose(aten.max_pool2d.default, x.long(), [5, 5], [2, 2]) is NotImplemented


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("size", "kernel", "stride"), [(5, 3, 3), (4, 3, 2), (2, 1, 4)], ids=str)
def test_a_single_mean_of_a_longer_input(rank, size, kernel, stride):
    operator = getattr(aten, f"avg_pool{rank}d").default
    compare(operator, samples(rank, size), [kernel] * rank, [stride] * rank)
    compare(operator, samples(rank, size), [kernel], [stride])


@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("ceil_mode", [True, False])
@pytest.mark.parametrize("include_pad", [True, False])
@pytest.mark.parametrize("geometry", GEOMETRIES[:4], ids=str)
def test_sums_by_a_divisor(rank, ceil_mode, include_pad, geometry):
    size, kernel, stride, padding = geometry
    operator = getattr(aten, f"avg_pool{rank}d").default
    size += 3  # torch wants three dimensions to be as long as the window without padding
    steps = [[amount] * rank for amount in (kernel, stride, padding)]
    compare(operator, samples(rank, size), *steps, ceil_mode, include_pad, 5)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("include_pad", [True, False])
@pytest.mark.parametrize("size", [3, 4, 7])
def test_means_of_windows_beyond_the_end(rank, include_pad, size):
    operator = getattr(aten, f"avg_pool{rank}d").default
    for kernel, stride, padding in (((3, 2, 3), (2, 3, 1), 0), ((2, 3, 2), (3, 2, 2), 1)):
        x = samples(rank, 5)[..., :size]
        steps = kernel[:rank], stride[:rank], [padding] * rank
        compare(operator, x, *steps, True, include_pad, rtol=1e-5, atol=1e-6)


def test_compiled_means_of_windows_beyond_the_end(check):
    pool = torch.nn.functional.avg_pool2d
    functions = {
        "not counted": lambda x: pool(x, (3, 2), (2, 3), 0, True, False),
        "counted": lambda x: pool(x, (3, 2), (2, 3), 1, True),
    }
    check(functions, [torch.randn(1, 1, 3, 4)])


def test_means_without_a_divisor_are_left_alone():
    assert decompose(aten.avg_pool2d.default, samples(2, 6), [2, 2], [2, 2]) is NotImplemented
    assert decompose(aten.avg_pool2d.default, samples(2, 5), [3, 3], [3, 3], [1, 1]) is (
        NotImplemented
    )


@pytest.mark.parametrize("name", ["adaptive_avg_pool", "adaptive_max_pool"])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_adaptive_pools_of_samples_without_a_batch(name, rank):
    compare(getattr(aten, f"{name}{rank}d").default, samples(rank, 5)[0], [2] * rank)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_pools_of_samples_without_a_batch(rank):
    x = samples(rank, 4)[0]
    for name in ("avg_pool", "max_pool"):
        compare(getattr(aten, f"{name}{rank}d").default, x, [2] * rank)
    for name in ("max_pool1d", "max_pool2d", "max_pool3d"):
        if name[-2] == str(rank):
            compare(getattr(aten, f"{name}_with_indices").default, x, [2] * rank)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_transposed_convolutions_of_samples_without_a_batch(rank):
    packet = getattr(aten, f"conv_transpose{rank}d")
    operator = packet.default if rank == 1 else packet.input
    weight = torch.randn(3, 2, *[2] * rank)
    compare(operator, samples(rank, 4)[0], weight, rtol=1e-4, atol=1e-4)


def test_adaptive_means_of_dynamic_sizes(check):
    """IREE fuses the convolution of each channel into what its own lowering reads."""
    kernel = torch.randn(32, 1, 3, 3)

    def pooled(x):
        y = torch.nn.functional.conv2d(x, kernel, padding=1, groups=32)
        pool = torch.nn.functional.adaptive_avg_pool2d
        return pool(y, 1), pool(y, (2, 3)), pool(y.relu(), (1, 5))

    sizes = {2: torch.export.Dim("h", min=8, max=256), 3: torch.export.Dim("w", min=8, max=256)}
    calls = [[torch.randn(1, 32, h, w)] for h, w in ((64, 96), (9, 8))]
    check({"pooled": pooled}, *calls, dynamic=[sizes])
