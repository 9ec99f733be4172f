"""Procedures traced by hand: a module with one function, its operations and its folded results."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from iree.compiler.ir import (
    BoolAttr,
    Context,
    FloatAttr,
    IntegerAttr,
    Location,
    Module,
    Operation,
    Value,
)
from iree.compiler.passmanager import PassManager

from pelton.aot.ir.builder import ModuleBuilder
from pelton.aot.ir.module import operations_within
from pelton.aot.procedural.module.procedure_trace import ProcedureTrace
from pelton.aot.procedural.values import arithmetic
from pelton.aot.procedural.values.current import new_ir_trace_scope
from pelton.aot.procedural.values.scalars import IrImmediateScalar, IrScalar
from pelton.aot.procedural.values.tensors import IrTensor

_context = functools.cache(Context)
"""The context of all modules traced by hand: making one takes longer than a test."""


def new_builder() -> ModuleBuilder:
    """Return the builder of an empty module."""
    return ModuleBuilder(Module.create(Location.unknown(_context())).operation)


@contextmanager
def tracing(*types: Any, builder: ModuleBuilder | None = None) -> Iterator[ProcedureTrace]:
    """Trace a function `f` by hand; `proxy_posargs` are its arguments of the abstract types."""
    builder = builder or new_builder()
    trace = ProcedureTrace.define_func(
        builder,
        symbol_name="f",
        posargs=types,
        kwargs={},
        loc=Location.unknown(builder.context),
    )
    with new_ir_trace_scope(trace):
        yield trace


def scalar(trace: ProcedureTrace, value: float, kind: str) -> IrScalar:
    """Return a traced constant of a kind."""
    with trace.emitting():
        return IrImmediateScalar(arithmetic.constant(value, kind))


def names_of(trace: ProcedureTrace, *ignored: str) -> list[str]:
    """Return the names of the operations of a function in order, without constants."""
    ignored = (*ignored, "arith.constant")
    return [op.name for op in operations_within(trace.func_op.operation) if op.name not in ignored]


def text_of(trace: ProcedureTrace) -> str:
    """Return the text of a function, without locations."""
    return str(trace.func_op)


def required(trace: ProcedureTrace) -> list[str]:
    """Return the messages of the checks that a function makes when it runs."""
    return re.findall(r'message = "f\(\): ([^"]*?)(?: \(at [^"]*\))?"', text_of(trace))


def shape_of(tensor: IrTensor) -> list[int | str]:
    """Return the sizes of a traced tensor, with `?` for dynamic ones."""
    return [size if isinstance(size, int) else "?" for size in tensor.shape]


def folded(trace: ProcedureTrace, values: Sequence[IrScalar | Value]) -> list[Any]:
    """Return scalars as Python numbers: MLIR's folders evaluate the operations on constants."""
    results = [v.ir_value if isinstance(v, IrScalar) else v for v in values]
    trace.emit_return(*results)
    with trace.context:
        PassManager.parse("func.func(canonicalize)").run(trace.func_op.operation)
    returned = list(trace.func_op.entry_block.operations)[-1]
    return [_number(operand.owner) for operand in returned.operands]


def _number(op: Operation) -> Any:
    assert op.name == "arith.constant", f"not folded: {op}"
    attribute = op.attributes["value"]
    assert isinstance(attribute, (BoolAttr, FloatAttr, IntegerAttr)), f"no scalar: {op}"
    return attribute.value
