"""Simplification of ONNX models that changes no numbers."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

_ITERATIONS = 2
_SUBGRAPHS = "pkg.torch."


def optimize(model: Any) -> None:
    """Inline, fold and clean up an `onnx_ir.Model` in place.

    That is what onnxscript does by default, without its rules for `x + 0` and `x * 1`: they compare
    with a tolerance, and so remove the small constants of normalisations (`x + 1e-12`).

    Args:
        model: The model as torch.onnx gives it without optimising.
    """
    passes = importlib.import_module("onnx_ir.passes.common")
    optimizer = importlib.import_module("onnxscript.optimizer")
    rewriter = importlib.import_module("onnxscript.rewriter")
    passes.InlinePass()(model)
    for _ in range(_ITERATIONS):
        optimizer.fold_constants(model)
        rewriter.rewrite(model, _exact_rules(rewriter))
    for finish in (
        passes.LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0),
        passes.LiftSubgraphInitializersToMainGraphPass(),
        passes.DeduplicateInitializersPass(),
        passes.CommonSubexpressionEliminationPass(),
        passes.OutputFixPass(),
        passes.NameFixPass(),
    ):
        finish(model)


@contextlib.contextmanager
def nested_subgraphs() -> Iterator[None]:
    """Let torch.onnx convert branches within loops, whose versions it states two ways (2.13)."""
    owner = importlib.import_module("onnxscript.version_converter").ConvertVersionPass
    convert = owner.call

    def call(self: Any, model: Any) -> Any:
        _agree_on_versions(model)
        return convert(self, model)

    with mock.patch.object(owner, "call", call):
        yield


def _agree_on_versions(model: Any) -> None:
    """Give subgraphs one version: torch.onnx states another for those within others."""
    imports = [model.opset_imports, *(f.opset_imports for f in model.functions.values())]
    for stated in imports:
        for domain in [*stated]:
            if domain.startswith(_SUBGRAPHS):
                stated[domain] = model.opset_imports[""]


def _exact_rules(rewriter: Any) -> Sequence[Any]:
    approximate = importlib.import_module("onnxscript.rewriter.rules.common._no_op").rules
    left_out = {id(rule) for rule in approximate}
    return [rule for rule in rewriter._DEFAULT_REWRITE_RULES if id(rule) not in left_out]
