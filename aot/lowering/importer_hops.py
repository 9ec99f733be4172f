"""Importing `torch.cond`, `torch.while_loop`, `scan` and `map` as regions of the torch dialect.

torch-mlir's importer makes functions of branches and bodies, by names that may be taken, and lacks
all but loops. Here they are the regions of `torch.prim.If` and `torch.prim.Loop`, which see the
values around them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from iree.compiler.extras import fx_importer
from iree.compiler.ir import (
    Attribute,
    Block,
    InsertionPoint,
    IntegerAttr,
    IntegerType,
    Location,
    Operation,
    Type,
    Value,
)
from torch.fx import GraphModule, Node

from ..compat.fx_importer import NodeImporter
from ..compat.operators import HigherOrderOperator
from ..spec.errors import UnsupportedOpError

NAMES = ("cond", "while_loop", "scan", "map_impl")
"""The higher-order operators that are imported here."""

_FOREVER = 2**63 - 1


class HigherOrderImporter(NodeImporter):
    """The part of an importer of one graph that knows operators with graphs of their own."""

    def import_higher_order(self, loc: Location, node: Node, operator: HigherOrderOperator) -> None:
        """Import one of `NAMES` as regions; others as torch-mlir's importer does."""
        importers: dict[str, Callable[[Location, Node], None]] = {
            "cond": self._import_cond,
            "while_loop": self._import_while_loop,
            "scan": self._import_scan,
            "map_impl": self._import_map,
        }
        known = importers.get(str(operator))
        if known is None:
            super().import_higher_order(loc, node, operator)
        else:
            known(loc, node)

    def _import_cond(self, loc: Location, node: Node) -> None:
        predicate, *branches, operands = node.args
        values = self._values(loc, operands)
        types = self._types(node.meta["val"])
        condition = self._truth(loc, predicate)
        op = Operation.create("torch.prim.If", types, [condition], regions=2, loc=loc)
        for region, branch in zip(op.regions, branches, strict=True):
            with loc:
                block = Block.create_at_start(region, [])
            results = self._inline(loc, block, self._graph(node, branch), values)
            self._end(loc, block, "torch.prim.If.yield", results, types)
        self._bind_results(node, list(op.results))

    def _import_while_loop(self, loc: Location, node: Node) -> None:
        condition, body, carried, *others = node.args
        first = self._values(loc, carried)
        around = self._values(loc, others[0] if others else ())
        types = self._types(node.meta["val"])

        def holds(block: Block, values: Sequence[Value]) -> Value:
            (found,) = self._inline(loc, block, self._graph(node, condition), [*values, *around])
            return self._as_bool(loc, found, block)

        def next_(block: Block, values: Sequence[Value]) -> tuple[Value, list[Value]]:
            inputs = [*values[1:], *around]
            results = self._inline(loc, block, self._graph(node, body), inputs)
            typed = [self._cast(loc, block, *pair) for pair in zip(results, types, strict=True)]
            return holds(block, typed), typed

        start = [self._cast(loc, self.block, *pair) for pair in zip(first, types, strict=True)]
        limit = self._int(loc, self.block, _FOREVER)
        results = self._loop(loc, limit, holds(self.block, start), start, next_)
        self._bind_results(node, results)

    def _import_scan(self, loc: Location, node: Node) -> None:
        combine, carried, sequences, others = node.args
        self._import_steps(loc, node, combine, carried, sequences, others)

    def _import_map(self, loc: Location, node: Node) -> None:
        function, sequences, others = node.args
        self._import_steps(loc, node, function, (), sequences, others)

    def _import_steps(
        self, loc: Location, node: Node, step: Any, carried: Any, sequences: Any, others: Any
    ) -> None:
        """Import a loop over the first dimension of sequences, whose results are stacked."""
        graph = self._graph(node, step)
        xs, around = self._values(loc, sequences), self._values(loc, others)
        value = node.meta["val"]
        stacked = value[len(carried) :]
        types = self._types(value)
        first = self._values(loc, carried)
        length = _Sizes(self, loc, [*sequences]).of(sequences[0].meta["val"].shape[0])
        known = _Sizes(self, loc, [*sequences, *carried, *others])
        first += [self._zeros(loc, node, like, known) for like in stacked]
        start = [self._cast(loc, self.block, *pair) for pair in zip(first, types, strict=True)]
        inputs = [item.meta["val"] for item in graph.graph.nodes if item.op == "placeholder"]

        def next_(block: Block, values: Sequence[Value]) -> tuple[Value, list[Value]]:
            number, *rest = values
            state, built = rest[: len(carried)], rest[len(carried) :]
            likes = inputs[len(carried) : len(carried) + len(xs)]
            slices = [
                self._select(loc, block, x, number, self._types([like])[0])
                for x, like in zip(xs, likes, strict=True)
            ]
            results = self._inline(loc, block, graph, [*state, *slices, *around])
            following, made = results[: len(carried)], results[len(carried) :]
            built = [
                self._put(loc, block, whole, part, number)
                for whole, part in zip(built, made, strict=True)
            ]
            typed = [
                self._cast(loc, block, *pair)
                for pair in zip([*following, *built], types, strict=True)
            ]
            return self._constant_bool(loc, block, True), typed

        going = self._constant_bool(loc, self.block, True)
        self._bind_results(node, self._loop(loc, length, going, start, next_))

    def _loop(
        self,
        loc: Location,
        limit: Value,
        going: Value,
        start: Sequence[Value],
        next_: Callable[[Block, Sequence[Value]], tuple[Value, list[Value]]],
    ) -> list[Value]:
        types = [value.type for value in start]
        op = Operation.create(
            "torch.prim.Loop", types, [limit, going, *start], regions=1, loc=loc, ip=self._at_end()
        )
        with loc:
            block = Block.create_at_start(op.regions[0], [self.cache.torch_int_type, *types])
        again, values = next_(block, list(block.arguments))
        self._end(loc, block, "torch.prim.Loop.condition", [again, *values], None)
        return list(op.results)

    def _at_end(self) -> InsertionPoint:
        return InsertionPoint(self.block)

    def _graph(self, node: Node, attribute: Any) -> GraphModule:
        module = getattr(node.graph.owning_module, attribute.target)
        assert isinstance(module, GraphModule), attribute
        return module

    def _inline(
        self, loc: Location, block: Block, module: GraphModule, values: Sequence[Value]
    ) -> list[Value]:
        """Import a graph at the end of a block, with values for its inputs; return its results."""
        inner = type(self)(self.fx_importer, self.context, self.cache, block)
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        for placeholder, value in zip(placeholders, values, strict=True):
            wanted = self._types([placeholder.meta["val"]])[0]
            inner.bind_node_value(placeholder, self._cast(loc, block, value, wanted))
        inner.import_nodes(module.graph.nodes, skip_placeholders_outputs=True)
        outputs = module.graph.output_node().args[0]
        listed = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        with InsertionPoint(block):
            return [inner.import_argument(loc, item) for item in listed if item is not None]

    def _end(
        self,
        loc: Location,
        block: Block,
        terminator: str,
        values: Sequence[Value],
        types: Sequence[Type] | None,
    ) -> None:
        if types is not None:
            values = [self._cast(loc, block, *pair) for pair in zip(values, types, strict=True)]
        Operation.create(terminator, [], list(values), loc=loc, ip=InsertionPoint(block))

    def _values(self, loc: Location, given: Any) -> list[Value]:
        return [self.import_argument(loc, item) for item in given]

    def _types(self, values: Any) -> list[Type]:
        listed = values if isinstance(values, (list, tuple)) else [values]
        return [
            self.cache.torch_int_type if isinstance(value, (int, torch.SymInt))
            else self.cache.value_info_to_type(value)
            for value in listed if value is not None
        ]  # fmt: skip

    def _bind_results(self, node: Node, results: Sequence[Value]) -> None:
        value = node.meta["val"]
        if not isinstance(value, (list, tuple)):
            self.bind_node_value(node, results[0])
            return
        self.mark_multi_result(node)
        found = iter(results)
        for number, item in enumerate(value):
            self.bind_node_value(node, None if item is None else next(found), number)

    def _cast(self, loc: Location, block: Block, value: Value, wanted: Type) -> Value:
        """Return a tensor as one of a type that says more or less of its sizes."""
        if value.type == wanted:
            return value
        return self._emit(loc, block, "torch.tensor_static_info_cast", wanted, value)

    def _truth(self, loc: Location, predicate: Any) -> Value:
        if isinstance(predicate, bool):
            return self._constant_bool(loc, self.block, predicate)
        return self._as_bool(loc, self.import_argument(loc, predicate), self.block)

    def _as_bool(self, loc: Location, value: Value, block: Block) -> Value:
        boolean = self.cache.torch_bool_type
        if value.type == boolean:
            return value
        return self._emit(loc, block, "torch.aten.Bool.Tensor", boolean, value)

    def _select(
        self, loc: Location, block: Block, whole: Value, number: Value, type_: Type
    ) -> Value:
        axis = self._int(loc, block, 0)
        return self._emit(loc, block, "torch.aten.select.int", type_, whole, axis, number)

    def _put(self, loc: Location, block: Block, whole: Value, part: Value, number: Value) -> Value:
        axis = self._int(loc, block, 0)
        return self._emit(
            loc, block, "torch.aten.select_scatter", whole.type, whole, part, axis, number
        )

    def _zeros(self, loc: Location, node: Node, like: torch.Tensor, known: _Sizes) -> Value:
        sizes = [known.of(size) for size in like.shape]
        listed = Operation.create(
            "torch.prim.ListConstruct",
            [Type.parse("!torch.list<int>", self.context)],
            sizes,
            loc=loc,
            ip=self._at_end(),
        ).result
        none = Operation.create(
            "torch.constant.none", [self.cache.torch_none_type], loc=loc, ip=self._at_end()
        ).result
        code = fx_importer.TORCH_DTYPE_TO_INT[like.dtype]
        dtype = self._int(loc, self.block, code)
        type_ = self._types([like])[0]
        operands = (listed, dtype, none, none, none)
        return self._emit(loc, self.block, "torch.aten.zeros", type_, *operands)

    def _int(self, loc: Location, block: Block, value: int) -> Value:
        with loc:
            attribute: Attribute = IntegerAttr.get(IntegerType.get_signless(64), value)
        return Operation.create(
            "torch.constant.int", [self.cache.torch_int_type], attributes={"value": attribute},
            loc=loc, ip=InsertionPoint(block),
        ).result  # fmt: skip

    def _constant_bool(self, loc: Location, block: Block, value: bool) -> Value:
        with loc:
            attribute: Attribute = IntegerAttr.get(IntegerType.get_signless(1), int(value))
        return Operation.create(
            "torch.constant.bool", [self.cache.torch_bool_type], attributes={"value": attribute},
            loc=loc, ip=InsertionPoint(block),
        ).result  # fmt: skip

    def _emit(self, loc: Location, block: Block, name: str, type_: Type, *operands: Value) -> Value:
        return Operation.create(
            name, [type_], list(operands), loc=loc, ip=InsertionPoint(block)
        ).result


@dataclass
class _Sizes:
    """Sizes that some tensors of a graph have, as values."""

    importer: HigherOrderImporter
    loc: Location
    tensors: Sequence[Node]

    def of(self, size: Any) -> Value:
        """Return a size.

        Raises:
            UnsupportedOpError: None of the tensors has it.
        """
        importer, loc = self.importer, self.loc
        if isinstance(size, int):
            return importer._int(loc, importer.block, size)
        for node in self.tensors:
            value = node.meta["val"]
            if isinstance(value, torch.SymInt) and value.node.expr == size.node.expr:
                return importer.import_argument(loc, node)
            for axis, found in enumerate(getattr(value, "shape", ())):
                if isinstance(found, torch.SymInt) and found.node.expr == size.node.expr:
                    tensor = importer.import_argument(loc, node)
                    number = importer._int(loc, importer.block, axis)
                    name, type_ = "torch.aten.size.int", importer.cache.torch_int_type
                    return importer._emit(loc, importer.block, name, type_, tensor, number)
        raise UnsupportedOpError(
            f"a scan or map gives results of size {size}, which none of its inputs has; make that "
            "size one of an input, or fixed",
            operators=("scan",),
        )
