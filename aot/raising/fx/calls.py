"""Operations that a function runs: its own, those in regions, and those of its callees."""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler.ir import Operation

from .source import ModuleSource, symbol_of

CALLS = ("func.call", "util.call")
"""The operations that call functions of the module."""


def operations_in(op: Operation) -> Iterator[Operation]:
    """Yield the operations in the regions of an operation, at any depth, in order."""
    for region in op.regions:
        for block in region.blocks:
            for view in block.operations:
                yield view.operation
                yield from operations_in(view.operation)


def operations_run_by(source: ModuleSource, op: Operation) -> Iterator[Operation]:
    """Yield what an operation runs: operations in its regions, and of all functions called."""
    pending, seen = [op], set[str]()
    while pending:
        outer = pending.pop()
        for inner in (outer, *operations_in(outer)):
            if inner is not outer:
                yield inner
            callee = symbol_of(inner, "callee") if inner.name in CALLS else ""
            if callee and callee not in seen:
                seen.add(callee)
                pending.append(source.function(callee))
