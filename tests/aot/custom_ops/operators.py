"""Custom operators that several tests use."""

from __future__ import annotations

import torch
from torch import Tensor

from pelton.aot.custom_ops import custom_op, register_body

GATED = """
    %factor = arith.truncf %slope : f64 to ${x.element}
    %empty = tensor.empty(${result.sizes}) : $result
    %0 = linalg.generic {
        indexing_maps = [${x.map}, ${gate.map}, ${result.map}],
        iterator_types = $iterators
    } ins(%x, %gate : $x, $gate) outs(%empty : $result) {
    ^bb0(%a: ${x.element}, %b: ${gate.element}, %out: ${result.element}):
      %c = math.tanh %b : ${x.element}
      %d = arith.mulf %a, %c : ${x.element}
      %e = arith.mulf %d, %factor : ${x.element}
      linalg.yield %e : ${x.element}
    } -> $result
    return %0 : $result
"""

gated = custom_op(
    "testing::gated(Tensor x, Tensor gate, float slope=1.0) -> Tensor",
    shapes="... d, d -> ... d",
    body=GATED,
    eager=lambda x, gate, slope=1.0: x * torch.tanh(gate) * slope,
)
"""`x * tanh(gate) * slope`, with the gate for all rows; for float32 and narrower."""

product = custom_op(
    "testing::product(Tensor x, Tensor y) -> Tensor",
    shapes="m k, k n -> m n",
    body="""
        %zero = arith.constant 0.0 : ${x.element}
        %empty = tensor.empty(${result.sizes}) : $result
        %start = linalg.fill ins(%zero : ${x.element}) outs(%empty : $result) -> $result
        %0 = linalg.generic {
            indexing_maps = [${x.map}, ${y.map}, ${result.map}], iterator_types = $iterators
        } ins(%x, %y : $x, $y) outs(%start : $result) {
        ^bb0(%a: ${x.element}, %b: ${x.element}, %sum: ${x.element}):
          %c = arith.mulf %a, %b : ${x.element}
          %d = arith.addf %sum, %c : ${x.element}
          linalg.yield %d : ${x.element}
        } -> $result
        return %0 : $result
    """,
)
"""The product of matrices, which only IREE computes."""


@torch.library.custom_op("testing::moved", mutates_args=())
def moved(x: Tensor, y: Tensor, shift: int) -> tuple[Tensor, Tensor]:
    """Two results of different element types, with a body that was registered for it."""
    return x + shift, (x > y).clone()


@moved.register_fake
def _(x: Tensor, y: Tensor, shift: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), torch.empty_like(x, dtype=torch.bool)


register_body(
    moved,
    """
    %n = flow.tensor.splat %shift : tensor<?xi64>{${x.sizes}}
    %0 = arith.addi %x, %n : $x
    %1 = arith.cmpi sgt, %x, %y : $x
    return %0, %1 : $result0, $result1
    """,
    shapes="n, n -> n, n",
)


@torch.library.custom_op("testing::bodiless", mutates_args=())
def bodiless(x: Tensor) -> Tensor:
    """An operator that has no body."""
    return x.clone()


@bodiless.register_fake
def _(x: Tensor) -> Tensor:
    return torch.empty_like(x)
