"""Loads and stores of globals, and calls, which are raised in place."""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler.ir import Operation

from .raiser import HandlerTable, Raiser
from .source import ModuleSource, symbol_of

CALLS = ("func.call", "util.call")


def _load(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, raiser.load(raiser.source.globals[symbol_of(op, "global")]))


def _store(raiser: Raiser, op: Operation) -> None:
    raiser.store(raiser.source.globals[symbol_of(op, "global")], raiser.value(op.operands[0]))


def _call(raiser: Raiser, op: Operation) -> None:
    callee = raiser.source.function(symbol_of(op, "callee"))
    raiser.bind(op, *raiser.inline(callee, raiser.values(op.operands)))


def _nothing(raiser: Raiser, op: Operation) -> None:
    """Raise an operation that only holds the compiler back."""
    raiser.bind(op, *raiser.values(op.operands))


def operations_in(op: Operation) -> Iterator[Operation]:
    """Yield the operations in the regions of an operation, at any depth, in order."""
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
                yield from operations_in(view.operation)


def operations_run_by(source: ModuleSource, op: Operation) -> Iterator[Operation]:
    """Yield the operations in the regions of an operation and in all functions that they call."""
    pending, seen = [op], set[str]()
    while pending:
        for inner in operations_in(pending.pop()):
            yield inner
            callee = symbol_of(inner, "callee") if inner.name in CALLS else ""
            if callee and callee not in seen:
                seen.add(callee)
                pending.append(source.function(callee))


HANDLERS: HandlerTable = {
    "util.global.load": _load,
    "util.global.store": _store,
    "util.optimization_barrier": _nothing,
    **dict.fromkeys(CALLS, _call),
}
"""Operations on what belongs to the whole module."""
