"""Resized tensors and grids of samples, beside eager torch."""

import pytest
import torch
from torch.nn import functional as F

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

NAMES = {1: "linear1d", 2: "bilinear2d", 3: "trilinear3d"}
SIZES = [[1, 1, 1], [2, 7, 3], [4, 4, 4], [9, 2, 5]]
TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def samples(rank):
    torch.manual_seed(0)
    return torch.randn(2, 3, *(4, 5, 3)[:rank])


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("align_corners", [True, False])
def test_linear_resizes_to_a_size(rank, size, align_corners):
    packet = getattr(aten, f"upsample_{NAMES[rank]}")
    x, size = samples(rank), size[:rank]
    compare(packet.default, x, size, align_corners, **TOLERANCE)
    compare(packet.vec, x, size, align_corners, None, **TOLERANCE)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("factor", [0.5, 1.0, 1.7, 2.0, 3.3])
@pytest.mark.parametrize("align_corners", [True, False])
def test_linear_resizes_by_a_factor(rank, factor, align_corners):
    packet = getattr(aten, f"upsample_{NAMES[rank]}")
    compare(packet.vec, samples(rank), None, align_corners, [factor] * rank, **TOLERANCE)


def test_factors_decide_where_points_are():
    x = samples(2)
    compare(aten.upsample_bilinear2d.default, x, [6, 8], False, 1.6, 1.7, **TOLERANCE)
    compare(
        aten.upsample_bilinear2d.default, x, [6, 8], False, scales_h=1.6, scales_w=1.7, **TOLERANCE
    )
    compare(aten.upsample_linear1d.default, samples(1), [6], False, scales=1.6, **TOLERANCE)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("factor", [0.4, 1.5, 2.5])
def test_nearest_pixels_by_a_factor(rank, factor):
    packet = getattr(aten, f"upsample_nearest{rank}d")
    compare(packet.vec, samples(rank), None, [factor] * rank)
    assert decompose(packet.vec, samples(rank), None, [2.0] * rank) is NotImplemented
    assert decompose(packet.vec, samples(rank), [3] * rank, None) is NotImplemented


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("factor", [0.4, 1.0, 1.5, 2.0])
def test_nearest_centres(rank, factor):
    packet = getattr(aten, f"_upsample_nearest_exact{rank}d")
    compare(packet.vec, samples(rank), None, [factor] * rank)
    for size in SIZES:
        compare(packet.vec, samples(rank), size[:rank], None)


PACKETS = [
    getattr(aten, f"{name}{rank}d") for name in ("upsample_nearest", "_upsample_nearest_exact")
    for rank in (1, 2, 3)
] + [getattr(aten, f"upsample_{name}") for name in NAMES.values()]  # fmt: skip


@pytest.mark.parametrize("packet", PACKETS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_sizes_that_the_factor_would_not_give(packet, dtype):
    """torch ignores the factor for sizes that stay as they are, in some operators if doubled."""
    linear = "linear" in str(packet)
    rank = int(str(packet)[-2])
    align = [[False], [True]] if linear else [[]]
    tolerance = {} if dtype is torch.float64 else {"rtol": 1e-3, "atol": 1e-3}
    for old in (1, 2, 3, 5):
        x = torch.randn(2, 1, *[old] * rank).to(dtype)
        for size in (1, 2, 3, 4, 5, 7, 10):
            for corners in align:
                compare(packet.default, x, [size] * rank, *corners, **tolerance)
                for factor in (0.7, 1.3):
                    compare(packet.default, x, [size] * rank, *corners, *[factor] * rank,
                            **tolerance)  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("packet", PACKETS[:3], ids=str)
def test_pixels_are_taken_in_the_precision_of_torch(packet, dtype):
    """For these sizes the whole part of the quotient depends on how it is rounded."""
    ones = [1] * (int(str(packet)[-2]) - 1)
    for old, size in ((2, 82), (4, 94), (52, 44), (6, 74)):
        x = torch.arange(old, dtype=dtype).reshape(1, 1, *ones, old)
        compare(packet.default, x, [*ones, size], nested=True)
        compare(packet.vec, x, [*ones, size], None, nested=True)
    compare(packet.vec, x[..., :4], None, [*[1.0] * len(ones), 41.0], nested=True)


def test_resized_images_of_varying_size(check):
    """Sizes where the result is as large as the argument, and where it is not."""
    resize = torch.nn.functional.interpolate
    programs = {
        f"{mode}, {factor}": lambda x, mode=mode, factor=factor: resize(
            x, mode=mode, scale_factor=factor
        )
        for mode, factor in (("nearest", 1.3), ("nearest", 2.4), ("bilinear", 1.3))
    }
    programs["to a size"] = lambda x: aten.upsample_nearest2d(x, [8, 11], 1.3, None)
    calls = [[torch.rand(1, 2, n, m)] for n, m in ((4, 5), (2, 1), (8, 3), (1, 7), (3, 8))]
    check(programs, *calls, dynamic=[{2: "h", 3: "w"}])


@pytest.mark.parametrize("interpolation", [0, 1])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("align_corners", [True, False])
def test_grids_of_points(interpolation, padding, align_corners):
    torch.manual_seed(1)
    grid = torch.rand(2, 3, 2, 4, 3) * 3 - 1.5
    compare(
        aten.grid_sampler_3d.default, samples(3), grid, interpolation, padding, align_corners,
        **TOLERANCE,
    )  # fmt: skip


def test_grids_on_the_borders():
    grid = torch.tensor([-1.0, 1.0, 0.0]).expand(1, 1, 1, 3).reshape(1, 1, 1, 1, 3)
    for padding in (0, 1, 2):
        compare(aten.grid_sampler_3d.default, samples(3)[:1], grid, 0, padding, True, **TOLERANCE)


def test_aligned_corners_of_sizes_that_may_be_one(check):
    grid = torch.linspace(-2, 2, 12).view(1, 2, 3, 2)
    check(
        {
            "resized": lambda x: F.interpolate(
                x, scale_factor=1.7, mode="bilinear", align_corners=True
            ),
            **{
                mode: lambda x, mode=mode: F.grid_sample(
                    x, grid, mode=mode, align_corners=True, padding_mode="reflection"
                )
                for mode in ("bilinear", "nearest")
            },
        },
        *[[torch.randn(1, 1, *size)] for size in ((3, 4), (1, 3), (1, 1), (4, 1))],
        dynamic=[{2: torch.export.Dim("h", min=1), 3: torch.export.Dim("w", min=1)}],
    )
