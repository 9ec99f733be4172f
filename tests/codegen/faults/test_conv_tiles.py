"""Tile sizes of convolutions of dynamic width: overridden ones, and results equal to torch's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot, runtime
from pelton.aot.targets.iree import target as iree_target
from pelton.codegen import CompilerFailed, PhasePasses
from pelton.codegen import passes as phase_passes
from pelton.codegen.faults.conv_tiles import (
    channel_tile,
    conv_functions,
    override_conv_lowering_config,
)
from tests.codegen.ir import parsed, reprinted, rewritten

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
    """Convolutions of which some have IREE's own tiles."""
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

    def spying(module_op: Any, channels: int) -> None:
        functions = conv_functions(module_op)
        override_conv_lowering_config(module_op, channels)
        peeled.append(
            sum("peeling" in str(each.attributes["translation_info"]) for each in functions)
        )

    monkeypatch.setattr(phase_passes, "override_conv_lowering_config", spying)
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

    def failing(source: Path, target: Path, flags: Sequence[str], passes: PhasePasses) -> None:
        if passes.channel_tile:
            raise CompilerFailed("error: large vector sizes")
        compiler(source, target, flags, passes)

    monkeypatch.setattr(iree_target, "compile_file_isolated", failing)
    model = nn.Conv2d(3, 64, 3).eval()
    exported(model, 1, 8).compile(tmp_path / "a.vmfb", cache_dir=None)
    exe = runtime.load(tmp_path / "a.vmfb")
    assert exe.info.options["notes"] == [
        "IREE refused larger convolution tiles: error: large vector sizes"
    ]
    x = torch.randn(1, 3, 8, 8)
    torch.testing.assert_close(exe(x), model(x).detach(), rtol=1e-4, atol=1e-4)


CONVOLUTION = """
#map = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1 + d4, d2 + d5, d6)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d4, d5, d6, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5, d6) -> (d0, d1, d2, d3)>
#translation = #iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<
  ConvTileAndDecomposeExpert>>
func.func @main(%x: tensor<1x?x?x3xf32>, %w: tensor<3x3x3x32xf32>, %y: tensor<1x?x?x32xf32>)
    -> tensor<1x?x?x32xf32> attributes {translation_info = #translation} {
  %zero = arith.constant 0.0 : f32
  %empty = linalg.fill {lowering_config = #iree_cpu.lowering_config<
      vector_common_parallel = [1, 1, 1, 4]>}
    ins(%zero : f32) outs(%y : tensor<1x?x?x32xf32>) -> tensor<1x?x?x32xf32>
  %0 = linalg.generic {
    indexing_maps = [#map, #map1, #map2],
    iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction",
                      "reduction"]
  } ins(%x, %w : tensor<1x?x?x3xf32>, tensor<3x3x3x32xf32>) outs(%empty : tensor<1x?x?x32xf32>)
    attrs = {lowering_config = #iree_cpu.lowering_config<
      distribution = [0, 64, 64, 4, 0, 0, 0],
      vector_common_parallel = [1, 1, 1, 4, 0, 0, 0],
      vector_reduction = [0, 0, 0, 0, 1, 1, 3]>} {
  ^bb0(%in: f32, %weight: f32, %out: f32):
    %1 = arith.mulf %in, %weight : f32
    %2 = arith.addf %out, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<1x?x?x32xf32>
  return %0 : tensor<1x?x?x32xf32>
}
"""


def overridden(text: str, channels: int = 16) -> str:
    return rewritten(text, lambda module_op: override_conv_lowering_config(module_op, channels))


def test_tiles_of_a_convolution_and_what_is_fused_with_it_are_overridden() -> None:
    text = overridden(CONVOLUTION)
    assert "lowering_config<vector_common_parallel = [1, 1, 4, 16]>" in text
    assert (
        "lowering_config<distribution = [0, 8, 64, 16, 0, 0, 0], vector_common_parallel = "
        "[1, 1, 4, 16, 0, 0, 0], vector_reduction = [0, 0, 0, 0, 1, 1, 3]>"
    ) in text
    assert "ConvTileAndDecomposeExpert>, {enable_loop_peeling}>" in text


def test_workgroups_split_channels_only_where_tiles_divide_them() -> None:
    partial = overridden(CONVOLUTION.replace("32xf32", "24xf32"), 16)
    assert "distribution = [0, 8, 64, 0, 0, 0, 0]" in partial
    assert "vector_common_parallel = [1, 1, 4, 16]" in partial


def test_deep_convolutions_reduce_few_channels_at_a_time() -> None:
    deep = CONVOLUTION.replace("x3xf32>", "x48xf32>").replace("3x3x3x32", "3x3x48x32")
    assert "vector_reduction = [0, 0, 0, 0, 1, 1, 16]" in overridden(deep)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("1x?x?x32xf32", "1x?x8x32xf32"),
        ("f32", "f64"),
        ("ConvTileAndDecomposeExpert", "DoubleTilingExpert"),
        ("vector_common_parallel = [1, 1, 1, 4]>", "vector_common_parallel = [1, 1, 2, 4]>"),
        ("vector_reduction = [0, 0, 0, 0, 1, 1, 3]", "vector_inner_parallel = [1]"),
        ("attributes {translation_info = #translation}", ""),
    ],
    ids=["static width", "float64", "another pipeline", "other tiles", "no reduction", "no tiles"],
)
def test_other_functions_keep_their_tiles(old: str, new: str) -> None:
    assert old in CONVOLUTION
    text = CONVOLUTION.replace(old, new)
    assert overridden(text) == reprinted(text)


def test_functions_of_the_pipeline_for_convolutions_are_found() -> None:
    with parsed(CONVOLUTION + "func.func @other() { return }") as module_op:
        assert [str(f.attributes["sym_name"]) for f in conv_functions(module_op)] == ['"main"']


@pytest.mark.parametrize(
    ("outputs", "tile"), [(64, 64), (128, 64), (96, 32), (48, 16), (100, 32), (20, 16), (7, 7)]
)
def test_tiles_are_powers_of_two(outputs: int, tile: int) -> None:
    assert channel_tile(outputs, 64) == tile
