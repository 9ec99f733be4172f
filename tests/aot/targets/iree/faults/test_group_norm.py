"""Group normalisation as GPUs get it keeps its numbers; they are computed on a processor here."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pelton import aot, runtime
from pelton.aot.targets import find_target
from pelton.aot.targets.iree.faults.group_norm import decompose_group_norm
from pelton.runtime.artifacts.vmfb import read_info

BATCH = aot.NamedDimension("batch", 1, 2, 4)
HEIGHT = aot.NamedDimension("height", 1, 8, 64)
WIDTH = aot.NamedDimension("width", 1, 9, 64)


def loaded(out: aot.ExportOutput, path: Path) -> runtime.Executable:
    """Return the program with its norms taken apart."""
    given = out.exported
    apart = given.module_op.clone().operation
    decompose_group_norm(apart)
    assert "torch.aten.group_norm" in str(given.module_op)
    assert "torch.aten.group_norm" not in str(apart)
    target, _ = find_target("cpu")
    target.build(dataclasses.replace(given, module_op=apart), path, target.options({}))
    return runtime.load(path)


class Norms(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.affine = nn.GroupNorm(3, 6)
        self.plain = nn.GroupNorm(6, 6, eps=1e-3, affine=False)
        nn.init.normal_(self.affine.weight)
        nn.init.normal_(self.affine.bias)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        scaled = F.group_norm(x, 2, self.affine.weight)
        pooled = F.group_norm(x.mean((2, 3)), 2) if x.dim() == 4 else x
        return self.affine(x), self.plain(x), scaled, pooled


def test_group_norms_of_any_size(tmp_path: Path) -> None:
    model = Norms().eval()
    out = aot.export(model, args=[aot.InputInfo((BATCH, 6, HEIGHT, WIDTH), torch.float32)])
    exe = loaded(out, tmp_path / "a.vmfb")
    for batch, height, width in ((2, 1, 1), (1, 8, 9), (3, 1, 33), (4, 64, 64)):
        x = torch.randn(batch, 6, height, width)
        for given, wanted in zip(exe(x), model(x), strict=True):
            torch.testing.assert_close(given, wanted.detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 5), (2, 6, 3, 4, 5)])
def test_group_norms_of_any_rank(tmp_path: Path, shape: tuple[int, ...]) -> None:
    model = nn.GroupNorm(2, 6).eval()
    x = torch.randn(shape)
    exe = loaded(aot.export(model, args=(x,)), tmp_path / "a.vmfb")
    torch.testing.assert_close(exe(x), model(x).detach())


def test_values_far_from_zero_keep_their_variance(tmp_path: Path) -> None:
    model = nn.GroupNorm(2, 4).eval()
    x = torch.randn(1, 4, 128, 128) + 1000
    exe = loaded(aot.export(model, args=(x,)), tmp_path / "a.vmfb")
    wanted = model.double()(x.double()).float().detach()
    torch.testing.assert_close(exe(x), wanted, rtol=1e-3, atol=1e-3)


def test_other_element_types_stay_as_they_are() -> None:
    double = aot.export(nn.GroupNorm(2, 4).double(), args=(torch.ones(1, 4, 3).double(),))
    before = str(double.mlir_module)
    decompose_group_norm(double.mlir_module)
    assert str(double.mlir_module) == before


@pytest.mark.parametrize("arch", ["sm_60", "sm_80", "sm_120"])
def test_group_norms_compile_for_cuda(tmp_path: Path, arch: str) -> None:
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(8, 16), nn.SiLU()).eval()
    out = aot.export(model, args=(torch.randn(1, 3, 64, 64),))
    out.compile(tmp_path / "a.vmfb", target=f"cuda:{arch}")
    assert read_info(tmp_path / "a.vmfb").target["gpu"] == arch
