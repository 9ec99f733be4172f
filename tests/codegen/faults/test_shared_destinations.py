"""Destinations of writes are other values than what is read beside them."""

from __future__ import annotations

import pytest

from pelton.codegen.faults.shared_destinations import separate_destinations
from tests.codegen.ir import rewritten
from tests.programs import check_text

SLICE = """
func.func @main(%x: tensor<?x4xf32>, %y: tensor<?x3xf32>, %n: index) -> RESULTS {
  %new = tensor.insert_slice %y into %x[0, 1] [%n, 3] [1, 1] : tensor<?x3xf32> into tensor<?x4xf32>
  return VALUES : KINDS
}
"""

SCATTER = """
func.func @main(%x: tensor<4x2xf32>, %i: tensor<4xi64>) -> tensor<4x2xf32> {
  GIVEN
  %new = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true)
      ins(%x, %i : tensor<4x2xf32>, tensor<4xi64>) outs(%to : tensor<4x2xf32>) {
  ^bb0(%a: f32, %b: f32):
    iree_linalg_ext.yield %a : f32
  } -> tensor<4x2xf32>
  return %new : tensor<4x2xf32>
}
"""


def _slice(values: str, kinds: str) -> str:
    text = SLICE.replace("RESULTS", f"({kinds})")
    return text.replace("VALUES", values).replace("KINDS", kinds)


def test_a_slice_is_written_to_another_value_than_the_one_that_is_read() -> None:
    two = "tensor<?x4xf32>, tensor<?x4xf32>"
    check_text(
        rewritten(_slice("%new, %x", two), separate_destinations),
        """
        CHECK: %[[SIZE:.+]] = tensor.dim %[[X:.+]], %{{.+}} : tensor<?x4xf32>
        CHECK: %[[HIDDEN:.+]] = util.optimization_barrier %[[X]] : tensor<?x4xf32>
        CHECK: %[[TO:.+]] = flow.tensor.tie_shape %[[HIDDEN]] : tensor<?x4xf32>{%[[SIZE]]}
        CHECK: tensor.insert_slice %{{.+}} into %[[TO]]
        CHECK: return %{{.+}}, %[[X]]
        """,
    )


def test_a_destination_of_one_use_is_left() -> None:
    text = rewritten(_slice("%new", "tensor<?x4xf32>"), separate_destinations)
    assert "optimization_barrier" not in text


def test_a_tensor_of_stated_sizes_is_no_copy_of_it() -> None:
    text = """
    func.func @main(%given: tensor<?x4xf32>, %y: tensor<?x3xf32>, %n: index)
        -> (tensor<?x4xf32>, tensor<?x4xf32>) {
      %x = flow.tensor.tie_shape %given : tensor<?x4xf32>{%n}
      %new = tensor.insert_slice %y into %x[0, 1] [%n, 3] [1, 1]
          : tensor<?x3xf32> into tensor<?x4xf32>
      return %new, %x : tensor<?x4xf32>, tensor<?x4xf32>
    }
    """
    assert rewritten(text, separate_destinations).count("util.optimization_barrier") == 1


@pytest.mark.parametrize(
    ("given", "barriers"),
    [
        ("%to = tensor.empty() : tensor<4x2xf32>", 0),
        ("%to = arith.negf %x : tensor<4x2xf32>", 1),
    ],
    ids=["fresh", "computed"],
)
def test_a_scatter_writes_to_a_value_that_no_dispatch_computes(given: str, barriers: int) -> None:
    text = rewritten(SCATTER.replace("GIVEN", given), separate_destinations)
    assert text.count("util.optimization_barrier") == barriers
