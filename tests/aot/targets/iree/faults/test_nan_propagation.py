"""NaN in and NaN out: what is rewritten computes the same in torch."""

from __future__ import annotations

import math

import pytest
import torch
from iree.compiler.ir import Context, Module, Operation

from pelton.aot.ir.module import operations_within
from pelton.aot.raising.fx import open_source, raise_function
from pelton.aot.targets.iree.faults.nan_propagation import propagate_nans

NAN, INF = math.nan, math.inf
X = torch.tensor([[NAN, -INF, -2.0, 0.25], [INF, NAN, 3.0, NAN], [-1.0, 0.0, 7.0, 7.0]])


def module_of(operation: str, result: str, element: str = "f32", more: str = "") -> Operation:
    """Return a module that applies an operation to a matrix."""
    return Module.parse(
        f"""
        func.func @main(%x: !torch.vtensor<[3,4],{element}>{more}) -> {result} {{
          %low = torch.constant.float -1.0
          %high = torch.constant.float 1.0
          %power = torch.constant.float 0.3
          %root = torch.constant.float 0.5
          %square = torch.constant.float 2.0
          %one = torch.constant.int 1
          %no = torch.constant.bool false
          %yes = torch.constant.bool true
          %none = torch.constant.none
          %r = {operation} -> {result}
          return %r : {result}
        }}
        """,
        Context(),
    ).operation


def values(module: Operation, *args: torch.Tensor) -> torch.Tensor:
    (result,) = raise_function(open_source(module.clone()), "main").graph_module(*args)
    return result


MATRIX, BOUND = "!torch.vtensor<[3,4],f32>", "!torch.vtensor<[4],f32>"
SAME = f": {MATRIX}, !torch.float, !torch.float"
SCALAR = f": {MATRIX}, !torch.float"
PLACES = f": {MATRIX}, !torch.int, !torch.bool"

REWRITTEN = {
    "clamp": (f"torch.aten.clamp %x, %low, %high {SAME}", MATRIX),
    "clamp_min": (f"torch.aten.clamp_min %x, %low {SCALAR}", MATRIX),
    "clamp_max": (f"torch.aten.clamp_max %x, %high {SCALAR}", MATRIX),
    "threshold": (f"torch.aten.threshold %x, %low, %high {SAME}", MATRIX),
    "hardtanh": (f"torch.aten.hardtanh %x, %low, %high {SAME}", MATRIX),
    "relu6": (f"torch.aten.relu6 %x : {MATRIX}", MATRIX),
    "argmax": (f"torch.aten.argmax %x, %one, %no {PLACES}", "!torch.vtensor<[3],si64>"),
    "argmin": (f"torch.aten.argmin %x, %one, %yes {PLACES}", "!torch.vtensor<[3,1],si64>"),
    "argmax of all": (
        f"torch.aten.argmax %x, %none, %no : {MATRIX}, !torch.none, !torch.bool",
        "!torch.vtensor<[],si64>",
    ),
    "power": (f"torch.aten.pow.Tensor_Scalar %x, %power {SCALAR}", MATRIX),
}


@pytest.mark.parametrize("name", REWRITTEN)
def test_what_is_rewritten_computes_the_same(name: str) -> None:
    module = module_of(*REWRITTEN[name])
    before = values(module, X)
    operations = len(operations_within(module, "torch.aten.where.self"))
    propagate_nans(module)
    module.verify()
    assert len(operations_within(module, "torch.aten.where.self")) == operations + 1
    torch.testing.assert_close(values(module, X), before, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("first", [True, False])
def test_an_operand_that_is_broadcast_propagates_too(first: bool) -> None:
    operands = f"%y, %x : {BOUND}, {MATRIX}" if first else f"%x, %y : {MATRIX}, {BOUND}"
    module = module_of(f"torch.aten.maximum {operands}", MATRIX, more=f", %y: {BOUND}")
    y = torch.tensor([NAN, 5.0, -INF, 0.0])
    propagate_nans(module)
    module.verify()
    assert torch.equal(values(module, X, y).isnan(), torch.maximum(X, y).isnan())


@pytest.mark.parametrize(
    ("operation", "result", "element"),
    [
        ("torch.aten.maximum %x, %x", "!torch.vtensor<[3,4],si64>", "si64"),
        ("torch.aten.argmax %x, %one, %no", "!torch.vtensor<[3],si64>", "si32"),
        ("torch.aten.pow.Tensor_Scalar %x, %square", MATRIX, "f32"),
        ("torch.aten.pow.Tensor_Scalar %x, %root", MATRIX, "f32"),
    ],
    ids=["integers", "places of integers", "squares", "roots"],
)
def test_what_needs_no_care_stays(operation: str, result: str, element: str) -> None:
    given = f"!torch.vtensor<[3,4],{element}>"
    types = {"maximum": f"{given}, {given}", "argmax": f"{given}, !torch.int, !torch.bool"}
    module = module_of(
        f"{operation} : {types.get(operation.split('.')[2].split()[0], f'{given}, !torch.float')}",
        result,
        element,
    )
    before = str(module)
    propagate_nans(module)
    assert str(module) == before
