"""Loads and stores of globals, and calls, which are inlined."""

from __future__ import annotations

from iree.compiler.ir import Operation

from .branches import run_region
from .calls import CALLS
from .raiser import HandlerTable, Raiser
from .source import symbol_of


def _load(raiser: Raiser, op: Operation) -> None:
    raiser.bind(op, raiser.load(raiser.source.globals[symbol_of(op, "global")]))


def _store(raiser: Raiser, op: Operation) -> None:
    raiser.store(raiser.source.globals[symbol_of(op, "global")], raiser.value(op.operands[0]))


def _call(raiser: Raiser, op: Operation) -> None:
    callee = raiser.source.function(symbol_of(op, "callee"))
    arguments = raiser.values(op.operands)
    with raiser.called():
        raiser.bind_arguments(callee.regions[0].blocks[0], arguments)
        results = raiser.values(run_region(raiser, callee.regions[0]))
    raiser.bind(op, *results)


def _nothing(raiser: Raiser, op: Operation) -> None:
    """Raise an operation that only holds the compiler back."""
    raiser.bind(op, *raiser.values(op.operands))


HANDLERS: HandlerTable = {
    "util.global.load": _load,
    "util.global.store": _store,
    "util.optimization_barrier": _nothing,
    **dict.fromkeys(CALLS, _call),
}
"""Operations on what belongs to the whole module."""
