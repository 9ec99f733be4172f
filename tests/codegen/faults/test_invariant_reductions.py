"""Reductions with loop-invariant operands: the rewrite, and results equal to those of eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from iree.compiler.ir import Operation
from torch.nn import functional as F

from pelton import aot, runtime
from pelton.codegen import PhasePasses
from pelton.codegen.faults.const_eval_barriers import insert_const_eval_barriers
from pelton.codegen.faults.invariant_reductions import materialize_invariant_reduction_inputs
from pelton.codegen.faults.rounded_constants import round_constants
from pelton.codegen.linalg import operations_in
from tests.codegen.ir import parsed, reprinted, rewritten

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
    for shape in [*shapes, *shapes]:  # twice: constants must not be written to
        x = torch.randn(shape)
        torch.testing.assert_close(program(x), function(x))


@pytest.mark.parametrize(
    ("name", "sizes", "missing"),
    [
        ("sum over rows", None, insert_const_eval_barriers),
        ("sum over rows", {0: ROWS}, materialize_invariant_reduction_inputs),
        ("average pooling", {0: ROWS}, materialize_invariant_reduction_inputs),
        ("average pooling of two axes", None, insert_const_eval_barriers),
    ],
)
def test_each_pass_is_needed(
    name: str,
    sizes: dict[int, Any] | None,
    missing: Callable[[Operation], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fails once IREE compiles a program correctly: the pass is obsolete then."""
    passes = list(PhasePasses(dynamic_sizes=sizes is not None).pipeline())
    others = [(phase, run) for phase, run in passes if run is not missing]
    assert len(others) == len(passes) - 1
    monkeypatch.setattr(PhasePasses, "pipeline", lambda self: iter(others))
    program = compiled(FUNCTIONS[name], sizes, isolate=False)
    x = torch.randn(5, 6)
    assert not torch.allclose(program(x), FUNCTIONS[name](x))


def test_reductions_of_inputs_are_evaluated_and_fused_as_without_the_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[str, str]] = []
    pipeline = PhasePasses.pipeline

    def watched(self: PhasePasses) -> Any:
        for phase, run in pipeline(self):
            if run is round_constants:  # that of a normalisation is one that is rounded
                yield phase, run
                continue

            def watch(module_op: Operation, run: Any = run) -> None:
                before = str(module_op)
                run(module_op)
                seen.append((before, str(module_op)))

            yield phase, watch

    monkeypatch.setattr(PhasePasses, "pipeline", watched)
    weight = torch.nn.Parameter(torch.randn(6))
    for function in (
        lambda x: F.avg_pool1d(x[None], 2),
        lambda x: torch.softmax(x.masked_fill(torch.arange(6) > 3, -1e9), 1),
        lambda x: (x * 0).sum(1) + weight.square().sum(),
        lambda x: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
        lambda x: F.layer_norm(x, (6,)),
    ):
        compiled(function, None, isolate=False)
    assert len(seen) == 5 * (len(list(pipeline(PhasePasses()))) - 1)
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


def test_invariant_operand_that_the_body_computes_is_hoisted() -> None:
    with parsed(IN_BODY) as module_op:
        materialize_invariant_reduction_inputs(module_op)
        assert module_op.verify()
        (fill,) = operations_in(module_op, "linalg.fill")
        assert fill.operands[0].owner.name == "arith.mulf"
        again = str(module_op)
        materialize_invariant_reduction_inputs(module_op)
        assert str(module_op) == again


TWO_RESULTS = """
func.func @main(%x: tensor<?x?xf32>, %y: tensor<?xf32>, %z: tensor<?xf32>, %s: f32)
    -> (tensor<?xf32>, tensor<?xf32>) {
  %0:2 = linalg.generic {
    indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
                     affine_map<(i, j) -> (i)>],
    iterator_types = ["parallel", "reduction"]
  } ins(%x : tensor<?x?xf32>) outs(%y, %z : tensor<?xf32>, tensor<?xf32>) {
  ^bb0(%in: f32, %first: f32, %second: f32):
    %1 = arith.FIRST : f32
    %2 = arith.SECOND : f32
    linalg.yield %1, %2 : f32, f32
  } -> (tensor<?xf32>, tensor<?xf32>)
  return %0#0, %0#1 : tensor<?xf32>, tensor<?xf32>
}
"""


@pytest.mark.parametrize(
    ("first", "second", "materialized"),
    [
        ("addf %s, %first", "addf %in, %second", 1),
        ("addf %in, %first", "mulf %second, %s", 1),
        ("addf %s, %first", "mulf %second, %s", 2),
        ("addf %in, %first", "addf %in, %second", 0),
        ("maximumf %s, %first", "minimumf %s, %second", 0),
    ],
)
def test_only_invariant_operands_are_materialized(
    first: str, second: str, materialized: int
) -> None:
    text = rewritten(
        TWO_RESULTS.replace("FIRST", first).replace("SECOND", second),
        materialize_invariant_reduction_inputs,
    )
    assert text.count("linalg.fill ins(%arg3 : f32)") == materialized
    assert text.count("affine_map<(d0, d1) -> (d1)>") == (1 if materialized else 0)
    assert text.count("tensor.empty(%dim") == materialized


def test_loop_index_is_no_invariant() -> None:
    text = IN_BODY.replace(
        "%1 = arith.mulf %s, %s : f32",
        "%i = linalg.index 0 : index %n = arith.index_cast %i : index to i32 "
        "%1 = arith.sitofp %n : i32 to f32",
    )
    assert rewritten(text, materialize_invariant_reduction_inputs) == reprinted(text)


def test_elementwise_operations_are_no_reductions() -> None:
    text = IN_BODY.replace("affine_map<(i) -> ()>", "affine_map<(i) -> (i)>")
    text = text.replace('"reduction"', '"parallel"').replace("tensor<f32>", "tensor<8xf32>")
    assert rewritten(text, materialize_invariant_reduction_inputs) == reprinted(text)
