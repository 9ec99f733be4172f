"""Convolutions of dynamic sizes get larger tiles and compute what torch does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot, runtime
from pelton.aot.targets.iree import target as iree_target
from pelton.codegen import Changes, CompilerFailed, channels_of_tile
from pelton.codegen.faults import conv_tiles

SIZES = ((1, 1), (1, 9), (7, 2), (16, 33), (35, 5), (64, 67))


def chain() -> nn.Module:
    """Four convolutions: every stride, padding and dilation, tiles that fit and that do not."""
    return nn.Sequential(
        nn.Conv2d(3, 20, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(20, 100, 3, 1, 2, dilation=2),
        nn.SiLU(),
        nn.Conv2d(100, 64, (3, 5), (2, 1), (1, 2)),
        nn.Conv2d(64, 7, 1),
    ).eval()


def mixed() -> nn.Module:
    """Some of these keep the tiles that IREE chooses."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 5, padding=4, bias=False),
        nn.Conv2d(32, 17, 3, padding="same"),
        nn.ConvTranspose2d(17, 16, 3, 2, 1),
    ).eval()


def exported(model: nn.Module, batch: int | aot.NamedDimension, least: int) -> aot.ExportOutput:
    height = aot.NamedDimension("height", least, 16, 64)
    width = aot.NamedDimension("width", least, 16, 80)
    torch.manual_seed(0)
    return aot.export(model, args=[aot.InputInfo((batch, 3, height, width), torch.float32)])


@pytest.mark.parametrize("dynamic_batch", [False, True])
def test_a_chain_of_convolutions(tmp_path: Path, dynamic_batch: bool) -> None:
    model = chain()
    batch = aot.NamedDimension("batch", 1, 2, 4) if dynamic_batch else 2
    exported(model, batch, 1).compile(tmp_path / "a.vmfb")
    exe = runtime.load(tmp_path / "a.vmfb")
    for count in (1, 3) if dynamic_batch else (2,):
        for height, width in SIZES:
            x = torch.randn(count, 3, height, width)
            torch.testing.assert_close(exe(x), model(x).detach(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cpu", ["host", "haswell"])
def test_same_padding_and_transposed_ones(tmp_path: Path, cpu: str) -> None:
    model = mixed()
    exported(model, 1, 2).compile(tmp_path / "a.vmfb", target_cpu=cpu)
    exe = runtime.load(tmp_path / "a.vmfb")
    for height, width in ((2, 2), (3, 41), (32, 9), (64, 80)):
        x = torch.randn(1, 3, height, width)
        torch.testing.assert_close(exe(x), model(x).detach(), rtol=1e-4, atol=1e-4)


def test_tiles_are_exchanged_where_sizes_are_dynamic_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peeled: list[int] = []
    enlarge = conv_tiles.enlarge_tiles

    def spying(module_op: Any, channels: int) -> None:
        functions = conv_tiles._functions(module_op)
        enlarge(module_op, channels)
        peeled.append(
            sum("peeling" in str(each.attributes["translation_info"]) for each in functions)
        )

    monkeypatch.setattr(conv_tiles, "enlarge_tiles", spying)
    model = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.Conv2d(64, 128, 3)).eval()
    settings = {"cache_dir": None, "isolate": False}
    exported(model, 1, 8).compile(tmp_path / "a.vmfb", **settings)
    aot.export(model, args=(torch.ones(1, 3, 8, 8),)).compile(tmp_path / "b.vmfb", **settings)
    assert peeled == [2]
    exe = runtime.load(tmp_path / "a.vmfb")
    x = torch.randn(1, 3, 19, 30)
    torch.testing.assert_close(exe(x), model(x).detach(), rtol=1e-4, atol=1e-4)


def test_a_program_is_compiled_as_before_where_such_tiles_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = iree_target.compile_file_isolated

    def failing(source: Path, target: Path, flags: Sequence[str], changes: Changes) -> None:
        if changes.tile:
            raise CompilerFailed("error: large vector sizes")
        compiler(source, target, flags, changes)

    monkeypatch.setattr(iree_target, "compile_file_isolated", failing)
    model = nn.Conv2d(3, 64, 3).eval()
    exported(model, 1, 8).compile(tmp_path / "a.vmfb", cache_dir=None)
    exe = runtime.load(tmp_path / "a.vmfb")
    assert "notes" not in exe.info.options
    x = torch.randn(1, 3, 8, 8)
    torch.testing.assert_close(exe(x), model(x).detach(), rtol=1e-4, atol=1e-4)


def test_processors_without_wide_registers_get_smaller_tiles() -> None:
    assert channels_of_tile({"avx2", "fma"}) < channels_of_tile({"avx512f"})


@pytest.mark.parametrize(
    ("outputs", "tile"), [(64, 64), (128, 64), (96, 32), (48, 16), (100, 32), (20, 16), (7, 7)]
)
def test_tiles_are_powers_of_two(outputs: int, tile: int) -> None:
    assert conv_tiles._channels(outputs, 64) == tile
