"""What tests of raised operations share: modules in MLIR's text, and runs of their graphs."""

from __future__ import annotations

from typing import Any

import torch
from iree.compiler.ir import Context, Module

from pelton.aot.raising.fx.function import handler_of, raise_function
from pelton.aot.raising.fx.raised import Raised
from pelton.aot.raising.fx.raiser import Options, Raiser
from pelton.aot.raising.fx.source import ModuleSource, open_source


def source_of(text: str = "", **given: Any) -> ModuleSource:
    """Return the source of a module in MLIR's text."""
    return open_source(Module.parse(text, Context()).operation, **given)


def raiser_of(text: str = "", **options: bool) -> Raiser:
    """Return a walk that has an empty graph, over a module in MLIR's text."""
    return Raiser(source_of(text), Options(**options), handler_of)


def raised(text: str, name: str = "main", **options: bool) -> Raised:
    """Return a function of a module in MLIR's text as a graph."""
    return raise_function(source_of(text), name, **options)


def run(text: str, *args: Any, name: str = "main") -> list[Any]:
    """Return the results of a function, and behind them its new state, from a fresh start."""
    function = raised(text, name)
    state = [function.initial_state[p.origin] for p in function.inputs if p.kind == "state"]
    return [*function.graph_module(*args, *state)]


def body(text: str, arguments: str = "", results: str = "") -> str:
    """Return a module with one function `main`."""
    arrow = f" -> ({results})" if results else ""
    return f"func.func @main({arguments}){arrow} {{ {text} }}"


def targets_of(function: Raised) -> list[str]:
    """Return the operators of a graph, in order."""
    nodes = function.graph_module.graph.nodes
    return [str(node.target) for node in nodes if node.op == "call_function"]


def same(found: torch.Tensor, expected: Any, dtype: torch.dtype) -> bool:
    """Return whether a tensor has exactly some values in exactly a type."""
    wanted = torch.tensor(expected, dtype=dtype)
    return found.dtype == dtype and found.shape == wanted.shape and torch.equal(found, wanted)
