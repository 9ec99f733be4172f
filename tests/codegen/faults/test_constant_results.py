"""Scatters of constants at constant places are those of eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from iree.compiler.ir import Context, Module

from pelton import aot, runtime
from pelton.codegen.faults.constant_results import split_constant_results

X = torch.tensor([4.0, 5.0])


class _Buffers(torch.nn.Module):
    def __init__(self, count: int) -> None:
        super().__init__()
        self.register_buffer("places", torch.arange(count).flip(0))
        self.weight = torch.nn.Parameter(torch.arange(1.0, 1.0 + count))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.scatter_add(0, self.places, self.weight)


def _all(x: torch.Tensor) -> dict[str, torch.Tensor]:
    one = torch.tensor([1])
    return {
        "added": x.scatter_add(0, one, x.new_full((1,), 7)),
        "added at 0": x.scatter_add(0, torch.zeros(1, dtype=torch.int64), x.new_full((1,), 7)),
        "replaced": x[:1].scatter(0, one - 1, 2.0),
        "the larger": x.scatter_reduce(0, one, torch.tensor([9.0]), "amax"),
        "added twice": x.scatter_add(0, torch.tensor([1, 1]), x.new_full((2,), 7)),
    }


PROGRAMS: dict[str, Callable[..., Any]] = {
    "constants": _all, "a buffer": _Buffers(1), "two places": _Buffers(2)
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_scatter_of_constants_is_that_of_eager(name: str) -> None:
    program = PROGRAMS[name]
    executable = runtime.load(bytes(aot.export(program, args=(X,)).compile().map_memory()))
    got, want = executable(X), program(X)
    torch.testing.assert_close(got, want, rtol=0, atol=0)


PAIR = """
func.func @f(%x: tensor<2xf32>) -> (tensor<2xi64>, tensor<2xf32>) {
  %one = arith.constant 1 : i64
  %value = arith.constant 7.0 : f32
  %a = tensor.empty() : tensor<2xi64>
  %b = tensor.empty() : tensor<2xf32>
  %r:2 = linalg.generic {
      indexing_maps = [affine_map<(d0) -> (d0)>, INNER affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]} ins(SOURCE) outs(%a, %b : tensor<2xi64>, tensor<2xf32>) {
  ^bb0(%in: f32, %i: i64, %v: f32):
    %sum = arith.addf %in, FIRST : f32
    linalg.yield %one, %sum : i64, f32
  } -> (tensor<2xi64>, tensor<2xf32>)
  return %r#0, %r#1 : tensor<2xi64>, tensor<2xf32>
}
"""


@pytest.mark.parametrize(
    ("source", "first", "count"),
    [("%b : tensor<2xf32>", "%value", 2), ("%x : tensor<2xf32>", "%value", 1),
     ("%b : tensor<2xf32>", "%v", 1)],
    ids=["constant", "of an argument", "of another output"],
)  # fmt: skip
def test_only_independent_constants_are_split(source: str, first: str, count: int) -> None:
    text = PAIR.replace("INNER", "affine_map<(d0) -> (d0)>,").replace("SOURCE", source)
    with Context():
        module = Module.parse(text.replace("FIRST", first))
        split_constant_results(module.operation)
        assert module.operation.verify()
        assert str(module).count("linalg.generic") == count
