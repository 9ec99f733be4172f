"""Rewrite rules of onnxscript, and its conversion between versions of ONNX's operators."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def exact_rewrite_rules() -> Sequence[Any]:
    """Return onnxscript's default rewrite rules without those that compare with a tolerance."""
    rewriter = importlib.import_module("onnxscript.rewriter")
    approximate = importlib.import_module("onnxscript.rewriter.rules.common._no_op").rules
    left_out = {id(rule) for rule in approximate}
    return [rule for rule in rewriter._DEFAULT_REWRITE_RULES if id(rule) not in left_out]


@contextlib.contextmanager
def before_version_conversion(prepare: Callable[[Any], None]) -> Iterator[None]:
    """Run a function on each model that is converted to another version, in a `with` block.

    Args:
        prepare: Takes the `onnx_ir.Model` before it is converted, and may change it.
    """
    owner = importlib.import_module("onnxscript.version_converter").ConvertVersionPass
    convert = owner.call

    def call(self: Any, model: Any) -> Any:
        prepare(model)
        return convert(self, model)

    owner.call = call
    try:
        yield
    finally:
        owner.call = convert
