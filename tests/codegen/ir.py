"""MLIR for unit tests of passes: parsed, verified, without a compile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from iree.compiler.ir import Context, Module, Operation


@contextmanager
def parsed(text: str) -> Iterator[Operation]:
    """Parse a module, in a context that is current while the block runs."""
    with Context():
        yield Module.parse(text).operation


def rewritten(text: str, run: Callable[[Operation], None]) -> str:
    """Return the text of a module after a pass; the pass must leave it valid, and run twice."""
    with parsed(text) as module_op:
        run(module_op)
        assert module_op.verify()
        once = str(module_op)
        run(module_op)
        assert str(module_op) == once
        return once


def reprinted(text: str) -> str:
    """Return the text of a module as MLIR prints it."""
    return rewritten(text, lambda module_op: None)
