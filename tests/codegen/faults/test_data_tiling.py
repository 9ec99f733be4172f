"""Data tiling: which matrix products get the hint, and that dynamic ones compile."""

from __future__ import annotations

from pathlib import Path

import pytest

from pelton.codegen import PhasePasses, compile_file
from pelton.codegen.faults.data_tiling import mark_static_matmuls
from tests.codegen.ir import reprinted, rewritten

HINT = "iree.opt.data_tiling"
MATMUL = """
func.func @main(%a: tensor<{a}xf32>, %b: tensor<{b}xf32>, %c: tensor<?x?xf32>) -> tensor<?x?xf32> {{
  %0 = linalg.matmul {maps} ins(%a, %b : tensor<{a}xf32>, tensor<{b}xf32>)
    outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}}
"""
TRANSPOSED = """indexing_maps = [affine_map<(m, n, k) -> (k, m)>,
  affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]"""


@pytest.mark.parametrize(
    ("a", "b", "maps", "hinted"),
    [
        ("?x8", "8x?", "", True),
        ("4x8", "8x4", "", True),
        ("?x?", "?x?", "", False),
        ("4x?", "?x4", "", False),
        ("8x?", "8x?", TRANSPOSED, True),
        ("?x4", "?x4", TRANSPOSED, False),
    ],
    ids=["static", "all static", "all dynamic", "dynamic", "transposed", "transposed and dynamic"],
)
def test_products_that_reduce_over_a_static_size_are_hinted(
    a: str, b: str, maps: str, hinted: bool
) -> None:
    text = rewritten(MATMUL.format(a=a, b=b, maps=maps), mark_static_matmuls)
    assert (HINT in text) is hinted


def test_other_operations_get_no_hint() -> None:
    text = """
    func.func @main(%a: tensor<2x3x8xf32>, %b: tensor<2x8x4xf32>, %c: tensor<2x3x4xf32>)
        -> tensor<2x3x4xf32> {
      %0 = linalg.batch_matmul ins(%a, %b : tensor<2x3x8xf32>, tensor<2x8x4xf32>)
        outs(%c : tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
      return %0 : tensor<2x3x4xf32>
    }
    """
    assert rewritten(text, mark_static_matmuls) == reprinted(text)


def test_product_over_a_dynamic_size_compiles_beside_a_static_one(tmp_path: Path) -> None:
    source = tmp_path / "main.mlir"
    source.write_text(
        """
        func.func @main(%a: tensor<?x16xf32>, %b: tensor<16x?xf32>, %v: tensor<?x16xf32>,
                        %c: tensor<?x?xf32>, %d: tensor<?x16xf32>) -> tensor<?x16xf32> {
          %0 = linalg.matmul ins(%a, %b : tensor<?x16xf32>, tensor<16x?xf32>)
            outs(%c : tensor<?x?xf32>) -> tensor<?x?xf32>
          %1 = linalg.matmul ins(%0, %v : tensor<?x?xf32>, tensor<?x16xf32>)
            outs(%d : tensor<?x16xf32>) -> tensor<?x16xf32>
          return %1 : tensor<?x16xf32>
        }
        """
    )
    flags = ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=generic"]
    flags += ["--iree-opt-level=O1", "--iree-opt-data-tiling"]
    compile_file(source, tmp_path / "main.vmfb", flags, PhasePasses(dynamic_sizes=True))
    assert (tmp_path / "main.vmfb").stat().st_size > 0
