"""Partition of a graph of AOTAutograd: the program to compile, and its aliases and constants.

AOTAutograd hands over a functional graph of flat inputs and outputs. Outputs that are inputs (what
the backward graph needs of them) or constants never enter the program, and neither do inputs that
nothing reads. Tensors that the graph holds become inputs, so that nothing of a model lies in the
program and each call reads what is there now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)
from torch.fx import Graph, GraphModule, Node

from ..compat import pytrees
from ..compat.fake_tensors import FakeTensorMode
from ..compat.symbolic import ValueRanges
from ..spec.errors import UnsupportedOpError


@dataclass(frozen=True)
class InputAlias:
    """An output that is input `position` of the call."""

    position: int


@dataclass(frozen=True)
class Constant:
    """An output that is always the same."""

    value: Any


@dataclass(frozen=True)
class ProgramOutput:
    """An output that is result `position` of the program.

    Attributes:
        position: Which result.
        order: How its dimensions are to be permuted to have the layout that eager gives it, of
            which torch has views planned already; None: it has it.
    """

    position: int
    order: tuple[int, ...] | None


Output = InputAlias | Constant | ProgramOutput


@dataclass(frozen=True)
class PartitionedGraph:
    """The parts of a graph.

    Attributes:
        program: What is to be compiled; None: nothing is computed.
        inputs: The inputs of the call that the program takes first, in order.
        held: The tensors of the graph that it takes after them.
        outputs: What the call gives.
    """

    program: ExportedProgram | None
    inputs: tuple[int, ...]
    held: tuple[torch.Tensor, ...]
    outputs: tuple[Output, ...]


def partition_graph(module: GraphModule) -> PartitionedGraph:
    """Return the parts of a graph of AOTAutograd, which stays as it is.

    Args:
        module: Has `val` metadata on its nodes.

    Raises:
        UnsupportedOpError: It takes something that is neither a tensor nor a number.
    """
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    outputs, results = _outputs(module, placeholders)
    if not results:
        return PartitionedGraph(None, (), (), outputs)
    graph, copies, held = _program_graph(module, results)
    read = [i for i, node in enumerate(placeholders) if copies[node].users]
    for index, node in enumerate(placeholders):
        if index not in read:
            graph.erase_node(copies[node])
    program = _exported(GraphModule(module, graph))
    return PartitionedGraph(program, tuple(read), tuple(held), outputs)


def _outputs(
    module: GraphModule, placeholders: Sequence[Node]
) -> tuple[tuple[Output, ...], list[Node]]:
    """Return what each output of a graph is, and the nodes that have to be computed for them."""
    positions = {node: index for index, node in enumerate(placeholders)}
    found: list[Output] = []
    results: dict[Node, ProgramOutput] = {}
    (given,) = module.graph.output_node().args
    for value in pytrees.tree_leaves(given, is_leaf=lambda leaf: leaf is None):
        if not isinstance(value, Node):
            found.append(Constant(value))
        elif value in positions:
            found.append(InputAlias(positions[value]))
        elif isinstance(value.meta.get("val"), int):  # a size that turned out to be a number
            found.append(Constant(value.meta["val"]))
        else:
            layout = layout_of(value.meta.get("val"))
            order = None if layout is None else tuple(layout.index(i) for i in range(len(layout)))
            found.append(results.setdefault(value, ProgramOutput(len(results), order)))
    return tuple(found), list(results)


def copy_of(module: GraphModule) -> GraphModule:
    """Return a module with a graph of its own; tensors and the graphs of branches are shared."""
    graph = Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    return GraphModule(module, graph)


def layout_of(value: Any) -> tuple[int, ...] | None:
    """Return the dimensions of a tensor in the order of its memory, the outermost first.

    Returns:
        None for what lies row after row, or has gaps or overlaps, as slices and expanded tensors.

    Example:
        >>> layout_of(torch.zeros(2, 3).t()), layout_of(torch.zeros(2, 3))
        ((1, 0), None)
    """
    if not isinstance(value, torch.Tensor):
        return None
    sizes = [_example(size) for size in value.shape]
    strides = [_example(stride) for stride in value.stride()]
    order = sorted(range(len(sizes)), key=lambda axis: (-strides[axis], -sizes[axis]))
    step = 1
    for axis in reversed(order):
        if sizes[axis] != 1 and strides[axis] != step:
            return None
        step *= sizes[axis]
    longer = [axis for axis in order if sizes[axis] != 1]
    return None if longer == sorted(longer) else tuple(order)


def _example(size: int | torch.SymInt) -> int:
    """Return a size as it is in the example that was traced."""
    hint = size.node.hint if isinstance(size, torch.SymInt) else size
    return 2 if hint is None else int(hint)


def _program_graph(
    module: GraphModule, results: Sequence[Node]
) -> tuple[Graph, dict[Node, Node], list[torch.Tensor]]:
    """Return a graph of the results alone, the copies of the nodes, and the tensors it holds."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    held: dict[str, tuple[torch.Tensor, Node]] = {}
    last_input: Node | None = None
    for node in module.graph.nodes:
        if node.op == "output":
            continue
        tensor = getattr(module, node.target, None) if node.op == "get_attr" else None
        if isinstance(tensor, torch.Tensor):
            if node.target not in held:
                held[node.target] = tensor, _input_for(tensor, node, graph, last_input)
                last_input = held[node.target][1]
            copies[node] = held[node.target][1]
            continue
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if node.op == "placeholder":
            last_input = copies[node]
    graph.output(tuple(_in_order_of_memory(graph, copies[node]) for node in results))
    graph.eliminate_dead_code()
    return graph, copies, [tensor for tensor, _ in held.values()]


def _in_order_of_memory(graph: Graph, node: Node) -> Node:
    """Return a result with its dimensions in the order that eager has them in memory."""
    value: Any = node.meta.get("val")
    layout = layout_of(value)
    if layout is None:
        return node
    permuted = graph.call_function(torch.ops.aten.permute.default, (node, list(layout)))
    with value.fake_mode:
        permuted.meta = {**node.meta, "val": value.permute(layout)}
    return permuted


def _input_for(tensor: torch.Tensor, node: Node, graph: Graph, after: Node | None) -> Node:
    """Add an input for a tensor that a graph holds, behind those that there are."""
    first = next(iter(graph.nodes), None)
    place = graph.inserting_after(after) if after else graph.inserting_before(first)
    with place:
        made = graph.placeholder(str(node.target).replace(".", "_"))
    value = node.meta.get("val")
    made.meta["val"] = _like(tensor, graph) if value is None else value
    return made


def _like(tensor: torch.Tensor, graph: Graph) -> Any:
    """Return a stand-in without data for a tensor, of the mode of the graph's other values."""
    for node in graph.nodes:
        for value in pytrees.tree_leaves(node.meta.get("val")):
            mode = getattr(value, "fake_mode", None)
            if mode is not None:
                return mode.from_tensor(tensor, static_shapes=True)
    return FakeTensorMode().from_tensor(tensor, static_shapes=True)


def _exported(module: GraphModule) -> ExportedProgram:
    """Return a graph as what torch.export would have made of it.

    Raises:
        UnsupportedOpError: It takes something that is neither a tensor nor a number.
    """
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    results: Any = module.graph.output_node().args[0]
    signature = ExportGraphSignature(
        [InputSpec(InputKind.USER_INPUT, _argument(node), None) for node in placeholders],
        [OutputSpec(OutputKind.USER_OUTPUT, _argument(node), None) for node in results],
    )
    call = torch.export.ModuleCallSignature(
        inputs=[],
        outputs=[],
        in_spec=pytrees.tree_structure(((0,) * len(placeholders), {})),
        out_spec=pytrees.tree_structure((0,) * len(results)),
        forward_arg_names=[node.name for node in placeholders],
    )
    return ExportedProgram(
        module,
        module.graph,
        signature,
        {},
        _ranges(module.graph),
        [torch.export.ModuleCallEntry("", call)],
    )


_ARGUMENTS: dict[type, Any] = {
    torch.SymInt: SymIntArgument,
    torch.SymFloat: SymFloatArgument,
    torch.SymBool: SymBoolArgument,
}


def _argument(node: Node) -> Any:
    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return TensorArgument(node.name)
    if isinstance(value, (int, float, bool)):
        return ConstantArgument(node.name, value)
    made = next((made for kind, made in _ARGUMENTS.items() if isinstance(value, kind)), None)
    if made is None:
        raise UnsupportedOpError(
            f"a graph takes or gives a {type(value).__name__} ({node.name}); only tensors and "
            "numbers can cross into a compiled program"
        )
    return made(node.name)


def _ranges(graph: Graph) -> dict[Any, ValueRanges[Any]]:
    """Return the range of each symbol of a graph's sizes."""
    ranges: dict[Any, ValueRanges[Any]] = {}
    for node in graph.nodes:
        for value in pytrees.tree_leaves(node.meta.get("val")):
            sizes = [*value.shape, *value.stride()] if isinstance(value, torch.Tensor) else [value]
            for size in sizes:
                if isinstance(size, torch.SymInt):
                    known = size.node.shape_env.var_to_range
                    ranges.update({s: known[s] for s in size.node.expr.free_symbols if s in known})
    return ranges
