"""Contracts of torch-mlir's importer: each public method is called in place of a private one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from iree.compiler.extras import fx_importer
from iree.compiler.ir import Context, Location, Module, Value

from pelton.aot.compat.fx_importer import NodeImporter, ProgramImporter
from pelton.aot.compat.operators import HigherOrderOperator
from tests.contracts import contract

CALLED: list[str] = []
"""The public methods that the importer called, in order."""


class Nodes(NodeImporter):
    def import_operator(self, loc: Location, node: torch.fx.Node, target: Any) -> None:
        CALLED.append(f"operator {node.target}")
        assert self.block.owner is not None and self.context == self.cache.torch_int_type.context
        super().import_operator(loc, node, target)

    def import_literal(self, value: Any, info: Any) -> Value:
        CALLED.append(f"literal {type(value).__name__}")
        return super().import_literal(value, info)

    def import_symbols(self, loc: Location, ranges: Any) -> None:
        CALLED.append(f"symbols {[(r.min_val, r.max_val) for r in ranges.values()]}")
        super().import_symbols(loc, ranges)

    def bind_symbolic_shape(self, loc: Location, node: torch.fx.Node) -> None:
        CALLED.append(f"shape {node.op}")
        super().bind_symbolic_shape(loc, node)

    def import_higher_order(
        self, loc: Location, node: torch.fx.Node, operator: HigherOrderOperator
    ) -> None:
        CALLED.append(f"higher order {operator.name()}")
        self.mark_multi_result(node)
        self.bind_node_value(node, self.import_argument(loc, node.args[3][0]), 0)  # type: ignore


class Programs(ProgramImporter):
    def import_child_modules(
        self, module: torch.fx.GraphModule, parent: str, symbolic_shapes: bool
    ) -> None:
        CALLED.append(f"children of {parent}")


class Hooks(fx_importer.FxImporterHooks):  # type: ignore[misc]
    def __init__(self) -> None:
        self.importers: list[Any] = []

    def resolve_literal(self, gni: Any, literal: Any, info: Any) -> Value | None:
        self.importers.append(gni)
        return None


class Cache(fx_importer.ContextCache):  # type: ignore[misc]
    def get_node_location(self, node: torch.fx.Node) -> Location:
        return Location.file("own.py", 7, 1, context=self.context)

    context: Context


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    CALLED.clear()


def imported(program: torch.nn.Module, *args: Any, **options: Any) -> tuple[str, Hooks]:
    exported = torch.export.export(program, args, **options)
    hooks = Hooks()
    module = Module.create(Location.unknown(Context()))
    importer = Programs(module=module, hooks=hooks, graph_node_importer_cls=Nodes)
    cache = Cache(importer.context)
    cache.context = importer.context
    importer.use_cache(cache)
    importer.import_program(
        exported, func_name="main", import_symbolic_shape_expressions=bool(options)
    )
    return module.operation.get_asm(enable_debug_info=True), hooks


class Add(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 2.5


class Branch(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,))


@contract("GraphNodeImporter._import_torch_op_overload", breaks="errors that name the operator")
def test_operators_are_imported_by_the_public_method() -> None:
    text, _ = imported(Add(), torch.ones(2))
    assert "operator aten.add.Tensor" in CALLED
    assert "torch.aten.add" in text


@contract("GraphNodeImporter._import_literal, _hooks", breaks="constants, which become globals")
def test_literals_are_imported_by_the_public_method() -> None:
    _, hooks = imported(Add(), torch.ones(2))
    assert "literal float" in CALLED
    assert hooks.importers and hooks.importers[0].hooks is hooks


@contract(
    "GraphNodeImporter._import_shape_symbols_with_guards, _create_bind_symbolic_shape_ops",
    breaks="import_symbolic_shape_expressions=True",
)
def test_symbolic_shapes_are_imported_by_the_public_methods() -> None:
    size = torch.export.Dim("size", min=2, max=8)
    text, _ = imported(Add(), torch.ones(3), dynamic_shapes={"x": {0: size}})
    assert {"symbols [(2, 8)]", "shape placeholder", "shape call_function"} <= set(CALLED)
    assert "torch.symbolic_int" in text and "torch.bind_symbolic_shape" in text


@contract(
    "GraphNodeImporter._import_hop, _import_argument, _multi_result_nodes, "
    "FxImporter._import_all_child_modules",
    breaks="lowering of cond, while_loop, scan and map",
)
def test_operators_with_graphs_are_imported_by_the_public_methods() -> None:
    text, _ = imported(Branch(), torch.ones(2))
    assert {"higher order cond", "children of main"} <= set(CALLED)
    assert "torch.aten.sin" not in text, "no function is made of a branch"
    assert text.count("func.func") == 1


@contract("FxImporter._c, _cc", breaks="MLIR locations of operations")
def test_locations_come_from_the_cache_that_is_used() -> None:
    text, _ = imported(Add(), torch.ones(2))
    assert '"own.py":7:1' in text
