"""Control flow over mutable globals: `scf` operations lowered to branches between blocks.

IREE (3.13) reorders loads and stores of globals around and inside of `scf` operations: loads move
before loops that store, stores in loop bodies are lost. The order between blocks is preserved, so
functions whose `scf` operations access mutable globals are lowered to `cf`; others stay in `scf`.
"""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler.ir import FlatSymbolRefAttr, Operation, StringAttr
from iree.compiler.passmanager import PassManager

from ...ir.builder import ModuleBuilder
from ...ir.module import operations_within


def lower_stateful_control_flow(builder: ModuleBuilder) -> None:
    """Lower `scf` to `cf` in the functions whose `scf` operations access mutable globals."""
    functions: dict[str, Operation] = {}
    mutable: set[str] = set()
    for op in builder.body.operations:
        operation = op.operation
        if operation.name == "func.func":
            functions[_symbol(operation)] = operation
        elif operation.name == "util.global" and "is_mutable" in operation.attributes:
            mutable.add(_symbol(operation))
    accessing = _accessing_functions(functions, mutable)
    stateful = [
        function
        for function in functions.values()
        if any(_accesses(inner, mutable, accessing) for inner in _inside_scf(function))
    ]
    if stateful:
        with builder.context:
            manager = PassManager.parse("func.func(convert-scf-to-cf)")
            for function in stateful:
                manager.run(function)


def _accessing_functions(functions: dict[str, Operation], mutable: set[str]) -> set[str]:
    """Return the names of the functions that access mutable globals, themselves or by calls."""
    callers: dict[str, set[str]] = {}
    waiting: list[str] = []
    for name, function in functions.items():
        for inner in operations_within(function):
            if inner.name == "func.call":
                callers.setdefault(_reference(inner, "callee"), set()).add(name)
            elif _accesses(inner, mutable, set()):
                waiting.append(name)
    accessing: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in accessing:
            accessing.add(name)
            waiting.extend(callers.get(name, ()))
    return accessing


def _accesses(op: Operation, mutable: set[str], accessing: set[str]) -> bool:
    if op.name in ("util.global.load", "util.global.store"):
        return _reference(op, "global") in mutable
    return op.name == "func.call" and _reference(op, "callee") in accessing


def _inside_scf(function: Operation) -> Iterator[Operation]:
    """Yield all operations within `scf` operations of a function."""
    for op in operations_within(function, "scf.if", "scf.for", "scf.while"):
        yield from operations_within(op)


def _reference(op: Operation, name: str) -> str:
    return str(FlatSymbolRefAttr(op.attributes[name]).value)


def _symbol(op: Operation) -> str:
    return str(StringAttr(op.attributes["sym_name"]).value)
