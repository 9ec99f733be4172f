"""torch-mlir's importer of fx graphs, whose extension points have public names here.

The importer asks subclasses to override methods that begin with an underscore. Each of those that
the lowering overrides or calls is bridged to a public one.
"""

from __future__ import annotations

from typing import Any

import torch
from iree.compiler.extras import fx_importer
from iree.compiler.ir import Block, Context, Location, Value

from .operators import HigherOrderOperator


class ProgramImporter(fx_importer.FxImporter):
    """The importer of one program."""

    @property
    def context(self) -> Context:
        """The MLIR context that it imports into."""
        return self._c

    def use_cache(self, cache: fx_importer.ContextCache) -> None:
        """Take types and source locations from another cache than the importer's own."""
        self._cc = cache

    def import_child_modules(
        self, module: torch.fx.GraphModule, parent: str, symbolic_shapes: bool
    ) -> None:
        """Import the graphs within a graph as functions.

        Args:
            module: The graph.
            parent: The name of its function.
            symbolic_shapes: Whether symbolic shapes are bound to values.
        """
        super()._import_all_child_modules(module, parent, symbolic_shapes)

    def _import_all_child_modules(
        self,
        module: torch.fx.GraphModule,
        parent_name: str,
        import_symbolic_shape_expressions: bool = False,
    ) -> None:
        self.import_child_modules(module, parent_name, import_symbolic_shape_expressions)


class NodeImporter(fx_importer.GraphNodeImporter):
    """The importer of one graph into a block."""

    @property
    def block(self) -> Block:
        """The block at whose end operations are emitted."""
        return self._b

    @property
    def context(self) -> Context:
        """The MLIR context."""
        return self._c

    @property
    def cache(self) -> fx_importer.ContextCache:
        """Types of the torch dialect, and source locations."""
        return self._cc

    @property
    def hooks(self) -> Any:
        """The hooks that the program's importer was made with."""
        return self.fx_importer._hooks

    def import_argument(self, loc: Location, argument: Any) -> Value:
        """Return the value of an argument of a node: another node, a literal, or a list."""
        return self._import_argument(loc, argument)

    def mark_multi_result(self, node: torch.fx.Node) -> None:
        """Note that the results of a node are bound one by one, for `getitem` to find."""
        self._multi_result_nodes.add(node)

    def import_operator(self, loc: Location, node: torch.fx.Node, target: Any) -> None:
        """Import the call of an operator.

        Args:
            loc: The source location.
            node: The call.
            target: The operator to import it as; None: its own.
        """
        super()._import_torch_op_overload(loc, node, target)

    def import_literal(self, value: Any, info: Any) -> Value:
        """Return the value of a constant, such as a tensor or a number.

        Args:
            value: The constant.
            info: Where it comes from, if it is an input of the program.
        """
        return super()._import_literal(value, info)

    def import_symbols(self, loc: Location, ranges: Any) -> None:
        """Import the symbols of symbolic sizes.

        Args:
            loc: The source location.
            ranges: The range of each symbol by its name.
        """
        super()._import_shape_symbols_with_guards(loc, ranges)

    def bind_symbolic_shape(self, loc: Location, node: torch.fx.Node) -> None:
        """Bind the shape of a node's value to the symbols in it.

        Raises:
            NotImplementedError: A size has no affine form.
        """
        super()._create_bind_symbolic_shape_ops(loc, node)

    def import_higher_order(
        self, loc: Location, node: torch.fx.Node, operator: HigherOrderOperator
    ) -> None:
        """Import the call of an operator that takes graphs.

        Args:
            loc: The source location.
            node: The call.
            operator: Its target.

        Raises:
            NotImplementedError: The importer has no form for it.
        """
        super()._import_hop(loc, node, operator)

    def _import_torch_op_overload(
        self, loc: Location, node: torch.fx.Node, concrete_target: Any = None
    ) -> None:
        self.import_operator(loc, node, concrete_target)

    def _import_literal(self, py_value: Any, info: Any = None) -> Value:
        return self.import_literal(py_value, info)

    def _import_shape_symbols_with_guards(self, loc: Location, symbolic_guards: Any) -> None:
        self.import_symbols(loc, symbolic_guards)

    def _create_bind_symbolic_shape_ops(self, loc: Location, node: torch.fx.Node) -> None:
        self.bind_symbolic_shape(loc, node)

    def _import_hop(self, loc: Location, node: torch.fx.Node, hop: HigherOrderOperator) -> None:
        self.import_higher_order(loc, node, hop)
