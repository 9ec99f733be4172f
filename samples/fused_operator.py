"""Write an operator by hand in MLIR: RMS normalisation with a gate, as two loops.

It is used in three ways: in eager, where IREE compiles it on the first call; within an exported
model, where it is fused with what stands before and after it; and in a process that knows only the
saved module.

    python samples/fused_operator.py
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pelton import aot, runtime
from pelton.aot.custom_ops import custom_op

gated_norm = custom_op(
    "samples::gated_norm(Tensor x, Tensor gate, Tensor weight, float eps=1e-6) -> Tensor",
    shapes="rows n, rows n, n -> rows n",
    body="""
        %zero = arith.constant 0.0 : f32
        %one = arith.constant 1.0 : f32
        %integer = arith.index_cast %size.n : index to i64
        %count = arith.sitofp %integer : i64 to f32
        %small = arith.truncf %eps : f64 to f32

        // The sum of the squares of each row.
        %sums = tensor.empty(%size.rows) : tensor<?xf32>
        %start = linalg.fill ins(%zero : f32) outs(%sums : tensor<?xf32>) -> tensor<?xf32>
        %squares = linalg.generic {
            indexing_maps = [${x.map}, affine_map<(d0, d1) -> (d0)>],
            iterator_types = ["parallel", "reduction"]
        } ins(%x : $x) outs(%start : tensor<?xf32>) {
        ^bb0(%a: f32, %sum: f32):
          %square = arith.mulf %a, %a : f32
          %next = arith.addf %sum, %square : f32
          linalg.yield %next : f32
        } -> tensor<?xf32>

        // x / sqrt(mean + eps) * weight * gate * sigmoid(gate)
        %empty = tensor.empty(${result.sizes}) : $result
        %y = linalg.generic {
            indexing_maps = [${x.map}, ${gate.map}, ${weight.map},
                             affine_map<(d0, d1) -> (d0)>, ${result.map}],
            iterator_types = $iterators
        } ins(%x, %gate, %weight, %squares : $x, $gate, $weight, tensor<?xf32>)
          outs(%empty : $result) {
        ^bb0(%a: f32, %g: f32, %w: f32, %sum: f32, %out: f32):
          %mean = arith.divf %sum, %count : f32
          %shifted = arith.addf %mean, %small : f32
          %scale = math.rsqrt %shifted : f32
          %normal = arith.mulf %a, %scale : f32
          %weighted = arith.mulf %normal, %w : f32
          %negative = arith.negf %g : f32
          %power = math.exp %negative : f32
          %divisor = arith.addf %power, %one : f32
          %silu = arith.divf %g, %divisor : f32
          %gated = arith.mulf %weighted, %silu : f32
          linalg.yield %gated : f32
        } -> $result
        return %y : $result
    """,
)


def reference(x: Tensor, gate: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    """Return the same, by operators of PyTorch."""
    return F.rms_norm(x, x.shape[-1:], weight, eps) * F.silu(gate)


class Block(nn.Module):
    """A gated layer: two projections, the operator, a projection."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.project = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)
        self.weight = nn.Parameter(torch.rand(width))
        self.norm = gated_norm

    def forward(self, x: Tensor) -> Tensor:
        x, gate = self.project(x).chunk(2, dim=-1)
        return self.out(self.norm(x, gate, self.weight))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--width", type=int, default=64)
    width = parser.parse_args().width
    torch.manual_seed(0)

    for rows in (1, 5):
        x, gate, weight = torch.randn(rows, width), torch.randn(rows, width), torch.rand(width)
        torch.testing.assert_close(gated_norm(x, gate, weight), reference(x, gate, weight))
    print("in eager: equal to PyTorch")

    block = Block(width).eval()
    rows = aot.NamedDimension("rows", 1, 8, 512)
    out = aot.export(block, args=[aot.InputInfo((rows, width), torch.float32)])
    block.norm = reference
    with tempfile.TemporaryDirectory() as folder:
        module, artifact = Path(folder, "block.mlirbc"), Path(folder, "block.vmfb")
        out.save_mlir(module)
        command = [sys.executable, "-m", "pelton.cli", "compile", str(module), "-o", str(artifact)]
        subprocess.run(command, check=True, capture_output=True)
        program = runtime.load(artifact)
    for count in (1, 8, 512):
        x = torch.randn(count, width)
        torch.testing.assert_close(program(x), block(x), rtol=1e-4, atol=1e-5)
        print(f"in the model, {count:3} rows: equal to PyTorch")


if __name__ == "__main__":
    main()
