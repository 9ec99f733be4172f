"""Pads of dynamic size: decomposed ones, and poolings beside convolutions that compile."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from pelton import aot, runtime
from pelton.codegen.faults import padded_convolutions
from pelton.codegen.faults.padded_convolutions import decompose_dynamic_pads
from tests.codegen.ir import reprinted, rewritten

POOLS = {
    "largest": nn.MaxPool2d(3, 2, 1),
    "average": nn.AvgPool2d(3, 2, 1),
    "one average": nn.AdaptiveAvgPool2d(1),
    "depthwise": nn.Conv2d(8, 8, 3, 2, 1, groups=8),
    "constant": nn.ConstantPad2d((1, 2, 0, 3), 7.0),
}


@pytest.mark.parametrize("pool", POOLS)
def test_a_pool_after_a_convolution_has_a_dynamic_batch(pool: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), POOLS[pool]).eval()
    batch = aot.NamedDimension("batch", 1, 2, 8)
    out = aot.export(model, args=[aot.InputInfo((batch, 3, 10, 12), torch.float32)])
    out.compile(tmp_path / "m.vmfb", cache_dir=None)
    exe = runtime.load(tmp_path / "m.vmfb")
    assert "notes" not in exe.info.options
    for size in (1, 2, 3, 8):
        x = torch.randn(size, 3, 10, 12)
        torch.testing.assert_close(exe(x), model(x).detach(), rtol=1e-4, atol=1e-4)


PADS = """
func.func @main(%x: tensor<?x2x4x4xf32>, %w: tensor<8x2x3x3xf32>, %value: f32)
    -> (tensor<?x8x4x4xf32>, tensor<?x2x7x4xf32>, tensor<?x2x6x6xf32>) {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<?x2x4x4xf32> to tensor<?x2x6x6xf32>
  %n = arith.constant 0 : index
  %batch = tensor.dim %x, %n : tensor<?x2x4x4xf32>
  %empty = tensor.empty(%batch) : tensor<?x8x4x4xf32>
  %1 = linalg.conv_2d_nchw_fchw ins(%0, %w : tensor<?x2x6x6xf32>, tensor<8x2x3x3xf32>)
    outs(%empty : tensor<?x8x4x4xf32>) -> tensor<?x8x4x4xf32>
  %2 = tensor.pad %x low[0, 0, 1, 0] high[0, 0, 2, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %value : f32
  } : tensor<?x2x4x4xf32> to tensor<?x2x7x4xf32>
  %3 = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    %sum = arith.addi %a, %b : index
    %integer = arith.index_cast %sum : index to i32
    %float = arith.sitofp %integer : i32 to f32
    tensor.yield %float : f32
  } : tensor<?x2x4x4xf32> to tensor<?x2x6x6xf32>
  return %1, %2, %3 : tensor<?x8x4x4xf32>, tensor<?x2x7x4xf32>, tensor<?x2x6x6xf32>
}
"""


def test_pads_of_convolutions_and_computed_ones_stay() -> None:
    text = rewritten(PADS, decompose_dynamic_pads)
    assert text.count("tensor.pad") == 2
    assert "tensor.insert_slice %arg0 into" in text
    assert "[0, 0, 1, 0] [%" in text and "2, 4, 4] [1, 1, 1, 1]" in text
    assert "linalg.fill ins(%arg2 : f32)" in text


PAD = """
func.func @main(%x: tensor<{inner}xf32>, %n: index) -> tensor<{outer}xf32> {{
  %value = arith.constant 7.0 : f32
  %0 = tensor.pad %x low[{low}] high[{high}] {{
  ^bb0(%a: index, %b: index):
    tensor.yield %value : f32
  }} : tensor<{inner}xf32> to tensor<{outer}xf32>
  return %0 : tensor<{outer}xf32>
}}
"""


def test_every_dynamic_size_is_computed() -> None:
    text = rewritten(
        PAD.format(inner="?x?", outer="?x?", low="1, 0", high="2, 5"), decompose_dynamic_pads
    )
    assert text.count("arith.addi") == 2 and "tensor.empty(%" in text
    assert "%c3 = arith.constant 3 : index" in text and "%c5 = arith.constant 5 : index" in text
    assert "into %" in text and "[1, 0] [%dim, %dim_" in text and "[1, 1]" in text


@pytest.mark.parametrize(
    ("inner", "outer", "low", "high"),
    [
        ("2x3", "5x3", "1, 0", "2, 0"),
        ("?x3", "?x3", "%n, 0", "0, 0"),
        ("?x3", "?x3", "0, 0", "%n, 0"),
    ],
    ids=["static", "dynamic before", "dynamic behind"],
)
def test_pads_that_iree_handles_stay(inner: str, outer: str, low: str, high: str) -> None:
    text = PAD.format(inner=inner, outer=outer, low=low, high=high)
    assert rewritten(text, decompose_dynamic_pads) == reprinted(text)


DEPTHWISE = """
func.func @main(%x: tensor<?x2x4x4xf32>, %w: tensor<2x3x3xf32>, %y: tensor<?x2x4x4xf32>)
    -> tensor<?x2x4x4xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[0, 0, 1, 1] high[0, 0, 1, 1] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<?x2x4x4xf32> to tensor<?x2x6x6xf32>
  %1 = linalg.depthwise_conv_2d_nchw_chw
    ins(%0, %w : tensor<?x2x6x6xf32>, tensor<2x3x3xf32>) outs(%y : tensor<?x2x4x4xf32>)
    -> tensor<?x2x4x4xf32>
  return %1 : tensor<?x2x4x4xf32>
}
"""


def test_pads_of_depthwise_convolutions_are_decomposed() -> None:
    text = rewritten(DEPTHWISE, decompose_dynamic_pads)
    assert "tensor.pad" not in text and "tensor.insert_slice" in text


class Windows(nn.Module):
    """Results of windows, padded: of one picture of dynamic size."""

    def __init__(self) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(4, 4, 3, groups=4)
        self.strided = nn.Conv2d(4, 4, 3, 2, 1, groups=4)
        self.dense = nn.Conv2d(4, 4, 3)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        largest = nn.functional.max_pool2d(x, 3, 1)
        depthwise = self.depthwise(x)
        results = {
            "largest": largest,
            "average": nn.functional.avg_pool2d(x, 3, 1),
            "depthwise": depthwise,
            "depthwise, relu": self.depthwise(x + 1).relu() * 2,
            "dense": self.dense(x),
            "resized": nn.functional.interpolate(x, scale_factor=2.0),
        }
        padded = {name: nn.functional.pad(y, (1, 1, 1, 1)) for name, y in results.items()}
        return padded | {
            "depthwise twice": self.strided(self.strided(x).relu()),
            "depthwise, largest": nn.functional.max_pool2d(depthwise, 3, 2, 1),
            "largest twice": nn.functional.max_pool2d(largest, 3, 2, 1),
            "adaptive": nn.functional.adaptive_avg_pool2d(depthwise, 2),
        }


def test_results_of_windows_are_padded_as_eager_does() -> None:
    torch.manual_seed(0)
    model = Windows().eval()
    height, width = (aot.NamedDimension(name, 8, 20, 64) for name in ("h", "w"))
    out = aot.export(model, args=[aot.InputInfo((1, 4, height, width), torch.float32)])
    run = runtime.load(bytes(out.compile().map_memory()))
    for size in ((20, 20), (9, 8), (8, 64)):
        x = torch.randn(1, 4, *size)
        torch.testing.assert_close(run(x), model(x), rtol=1e-4, atol=1e-4)


def test_compiler_still_writes_padded_windows_askew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails once IREE writes them where they belong: the barrier is obsolete then."""
    monkeypatch.setattr(padded_convolutions, "_reads_windows", lambda value: False)
    height, width = (aot.NamedDimension(name, 8, 20, 64) for name in ("h", "w"))

    def padded(x: torch.Tensor) -> torch.Tensor:
        return nn.functional.pad(nn.functional.avg_pool2d(x, 3, 1), (1, 1, 1, 1))

    out = aot.export(padded, args=[aot.InputInfo((1, 4, height, width), torch.float32)])
    run = runtime.load(bytes(out.compile(isolate=False, cache_dir=None).map_memory()))
    x = torch.randn(1, 4, 20, 33)
    assert not torch.allclose(run(x), padded(x))
