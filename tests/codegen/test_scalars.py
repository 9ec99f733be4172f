"""Scalar expressions, as the operations that they are."""

from __future__ import annotations

import pytest
from iree.compiler.ir import Context, InsertionPoint, Location, Module

from pelton.codegen.scalars import Float64, Int64, real, select, select_integer

EXPRESSIONS = {
    "sum": (lambda x: 1.0 + x + x, ["arith.addf", "arith.addf"]),
    "difference": (lambda x: 1.0 - x - x, ["arith.subf", "arith.subf"]),
    "product": (lambda x: 2.0 * x * x, ["arith.mulf", "arith.mulf"]),
    "quotient": (lambda x: 1.0 / x / x, ["arith.divf", "arith.divf"]),
    "negative": (lambda x: -x, ["arith.negf"]),
    "function": (lambda x: x.apply("copysign", x), ["math.copysign"]),
    "less": (lambda x: select(x < 1.0, x, 0.0), ["arith.cmpf olt", "arith.select"]),
    "more": (lambda x: select(x > 1.0, x, 0.0), ["arith.cmpf ogt", "arith.select"]),
    "equal": (lambda x: select(x.equals(1.0), x, 0.0), ["arith.cmpf oeq", "arith.select"]),
    "bits": (
        lambda x: ((((x.bits() + 1) - 2) & 7) << 3 >> 4).as_bits_of_float(),
        ["arith.bitcast", "arith.addi", "arith.subi", "arith.andi", "arith.shli", "arith.shrsi",
         "arith.bitcast"],
    ),
    "integers": (
        lambda x: select_integer(x.as_integer() >= 3, x.as_integer(), x.bits()).as_float(),
        ["arith.fptosi", "arith.cmpi sge", "arith.fptosi", "arith.bitcast", "arith.select",
         "arith.sitofp"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_are_operations(name: str) -> None:
    expression, wanted = EXPRESSIONS[name]
    with Context(), Location.unknown():
        module = Module.create()
        with InsertionPoint(module.body):
            result = expression(real(3.0))
            assert isinstance(result, Float64) and not isinstance(result, Int64)
        assert module.operation.verify()
        lines = [str(op).split(" = ")[1] for op in module.body.operations]
    found = [line.split("%")[0].strip(" ,") for line in lines if "arith.constant" not in line]
    assert [line.replace(", ", " ") for line in found] == wanted
