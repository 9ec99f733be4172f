"""Reductions of elements that are all the same constant are those of eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from iree.compiler.ir import Context, Module, Operation, WalkResult
from torch.nn import functional as F

from pelton import aot, runtime
from pelton.codegen import Changes
from pelton.codegen.faults.const_eval_barriers import keep_from_evaluation
from pelton.codegen.faults.invariant_reductions import mend_reductions

Function = Callable[[torch.Tensor], torch.Tensor]


def ones(x: torch.Tensor) -> torch.Tensor:
    return x.long() * 0 + 1


FUNCTIONS: dict[str, Function] = {
    "sum over rows": lambda x: ones(x).sum(1),
    "sum over columns": lambda x: ones(x).sum(0),
    "sum of all": lambda x: ones(x).sum(),
    "product": lambda x: (ones(x) + 1).prod(1),
    "einsum": lambda x: torch.einsum("ij->i", ones(x)),
    "places": lambda x: (torch.arange(x.shape[0]) * 0 + 1).sum(),
    "comparison with itself": lambda x: (x.long() <= x.long()).sum(),
    "share of equal ones": lambda x: (x.long() == x.long()).float().mean(1),
    "count": lambda x: (x.long() == x.long()).count_nonzero(),
    "difference with itself": lambda x: ((x.long() + 1) - x.long()).sum(1),
    "exclusive or": lambda x: ((x.long() ^ x.long()) + 1).sum(1),
    "remainder by one": lambda x: (x.long() % 1 + 1).sum(1),
    "clamp to a bound": lambda x: x.long().clamp(5, 3).sum(1),
    "choice of one": lambda x: torch.where((x.long() ^ x.long()) > 0, x, 1.0).sum(1),
    "average pooling": lambda x: F.avg_pool1d(torch.ones_like(x)[None], 2),
    "average pooling of two axes": lambda x: F.avg_pool2d(ones(x).float()[None, None], 2),
    "adaptive pooling": lambda x: F.adaptive_avg_pool1d(torch.ones_like(x)[None], 2),
    "pooling of powers": lambda x: F.lp_pool1d(torch.ones_like(x)[None], 2.0, 2),
    "a size": lambda x: (ones(x) + x.shape[0]).sum(1),
    "filled": lambda x: torch.full_like(x, 3.0).sum(1),
    "largest": lambda x: ones(x).amax(1),
    "places that are different": lambda x: (torch.arange(x.shape[0])[:, None] + ones(x)).sum(1),
}  # fmt: skip

ROWS, COLUMNS = torch.export.Dim("rows", min=2, max=2000), torch.export.Dim("columns", min=2)


def compiled(function: Function, sizes: dict[int, Any] | None, **settings: Any) -> Function:
    class Program(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function(x)

    out = aot.export(Program(), args=(torch.randn(5, 6),), dynamic_shapes=sizes and {"x": sizes})
    return runtime.load(bytes(out.compile(None, cache_dir=None, **settings).map_memory()))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(
    ("sizes", "shapes"),
    [
        (None, [(5, 6)]),
        ({0: ROWS}, [(2, 6), (5, 6), (999, 6)]),
        ({0: ROWS, 1: COLUMNS}, [(2, 17), (5, 6), (33, 1025)]),
    ],
    ids=["static", "rows vary", "all sizes vary"],
)
def test_results_are_those_of_eager(
    name: str, sizes: dict[int, Any] | None, shapes: list[tuple[int, int]]
) -> None:
    function = FUNCTIONS[name]
    program = compiled(function, sizes)
    for shape in [*shapes, *shapes]:  # twice: what is computed once must not be written to
        x = torch.randn(shape)
        torch.testing.assert_close(program(x), function(x))


@pytest.mark.parametrize(
    ("name", "sizes", "missing"),
    [
        ("sum over rows", None, keep_from_evaluation),
        ("sum over rows", {0: ROWS}, mend_reductions),
        ("average pooling", {0: ROWS}, mend_reductions),
        ("average pooling of two axes", None, keep_from_evaluation),
    ],
)
def test_each_change_is_needed(
    name: str,
    sizes: dict[int, Any] | None,
    missing: Callable[[Operation], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fails once IREE gets a program right by itself: the change is not needed any more then."""
    changes = list(Changes(sizes_vary=sizes is not None).by_phase())
    others = [(phase, change) for phase, change in changes if change is not missing]
    assert len(others) == len(changes) - 1
    monkeypatch.setattr(Changes, "by_phase", lambda self: iter(others))
    program = compiled(FUNCTIONS[name], sizes, isolate=False)
    x = torch.randn(5, 6)
    assert not torch.allclose(program(x), FUNCTIONS[name](x))


def test_a_mean_of_what_is_given_is_evaluated_and_fused_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only constants get barriers, and only what counts them is changed."""
    seen: list[tuple[str, str]] = []
    by_phase = Changes.by_phase

    def watched(self: Changes) -> Any:
        for phase, change in by_phase(self):

            def watch(module_op: Operation, change: Any = change) -> None:
                before = str(module_op)
                change(module_op)
                seen.append((before, str(module_op)))

            yield phase, watch

    monkeypatch.setattr(Changes, "by_phase", watched)
    weight = torch.nn.Parameter(torch.randn(6))
    for function in (
        lambda x: F.avg_pool1d(x[None], 2),
        lambda x: torch.softmax(x.masked_fill(torch.arange(6) > 3, -1e9), 1),
        lambda x: (x * 0).sum(1) + weight.square().sum(),
        lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
        lambda x: F.layer_norm(x, (6,)),
    ):
        compiled(function, None, isolate=False)
    assert len(seen) == 10
    for before, after in seen:
        assert before == after


IN_BODY = """
func.func @main(%x: tensor<8xf32>, %y: tensor<f32>, %s: f32) -> tensor<f32> {
  %0 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
    iterator_types = ["reduction"]
  } ins(%x : tensor<8xf32>) outs(%y : tensor<f32>) {
  ^bb0(%in: f32, %out: f32):
    %1 = arith.mulf %s, %s : f32
    %2 = arith.addf %1, %out : f32
    linalg.yield %2 : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}
"""


def test_a_number_that_the_loops_compute_is_computed_before_them() -> None:
    with Context():
        module_op = Module.parse(IN_BODY).operation
        mend_reductions(module_op)
        module_op.verify()
        fills: list[Operation] = []

        def visit(op: Operation) -> WalkResult:
            if op.name == "linalg.fill":
                fills.append(op)
            return WalkResult.ADVANCE

        module_op.walk(visit)
        (fill,) = fills
        assert fill.operands[0].owner.name == "arith.mulf"
        again = str(module_op)
        mend_reductions(module_op)
        assert str(module_op) == again
