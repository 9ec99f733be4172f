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


@pytest.mark.parametrize("size", [[1, 1], [2, 3], [4, 5], [7, 9]], ids=str)
@pytest.mark.parametrize("align_corners", [True, False])
def test_antialiased_resizes(size, align_corners):
    compare(aten._upsample_bilinear2d_aa.default, samples(2), size, align_corners, **TOLERANCE)


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
