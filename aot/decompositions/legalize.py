"""Legalization: an exported program of operators that the compiler lowers correctly."""

from __future__ import annotations

import contextlib
import copy
import logging
from collections.abc import Iterator, Mapping
from contextlib import nullcontext

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ExportGraphSignature
from torch.fx import GraphModule, Node
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ..capture.program import STATE_KINDS
from ..compat.dispatch import enable_python_dispatcher
from ..compat.exported_programs import decompose, with_graph
from ..compat.fake_tensors import FakeTensor
from ..compat.operators import OperatorBase, OpOverload, schema_of
from ..compat.pytrees import tree_leaves, tree_map_only
from .registry import Decomposition, DecompositionTable
from .rewrites import rewrite_graph
from .rewrites.constant_sizes import fix_constant_inputs, has_constant_inputs
from .strided_views import has_strided_views, take_from_owners
from .table import corrections, current_aot_decompositions

_LOG = logging.getLogger("pelton")
_FAKE_LOG = logging.getLogger("torch._subclasses.fake_tensor")

aten = torch.ops.aten


def legalize(
    program: ExportedProgram, table: Mapping[OperatorBase, Decomposition] | None = None
) -> ExportedProgram:
    """Return an equivalent program of operators that the compiler lowers correctly.

    The given program and its modules are not modified; weights are shared, not copied.

    Args:
        program: A program as returned by `torch.export.export`.
        table: Decompositions to use instead of `current_aot_decompositions()`. The corrections,
            without which results would be wrong, are added for operators that it lacks.

    Example:
        >>> import torch
        >>> program = torch.export.export(torch.nn.GELU(), (torch.ones(2),))
        >>> type(legalize(program)).__name__
        'ExportedProgram'
    """
    program = _with_views_of_owners(_with_constant_inputs(_without_unused_tensors(program)))
    chosen = current_aot_decompositions() if table is None else dict(table)
    functions = {**corrections(), **chosen}
    if must_retrace(program, functions):
        legal = decompose(_with_own_copies(program), functions)
    else:
        legal = _copy(program)
    rewrite_graph(legal.graph_module)
    return legal


def must_retrace(program: ExportedProgram, functions: DecompositionTable) -> bool:
    """Return whether decomposing would change the program, which costs as much as tracing it.

    It would not if no operator has an applicable decomposition, mutates a tensor or contains a
    subgraph.

    Args:
        program: The program.
        functions: The decompositions.
    """
    for node in program.graph.nodes:
        if node.op == "get_attr":
            return True
        if node.op != "call_function" or not isinstance(node.target, OperatorBase):
            continue
        if not isinstance(node.target, OpOverload) or schema_of(node.target).is_mutable:
            return True
        function = functions.get(node.target)
        if function is not None and applies(function, node):
            return True
    return False


def applies(function: Decomposition, node: Node) -> bool:
    """Return whether a decomposition applies to a node: it does not answer `NotImplemented`."""
    args, kwargs = tree_map_only(Node, lambda n: n.meta["val"], (node.args, node.kwargs))
    modes = [leaf.fake_mode for leaf in tree_leaves(args) if isinstance(leaf, FakeTensor)]
    mode = modes[0] if modes else None
    shape_env = mode.shape_env if mode is not None else None
    try:
        # As in a trace: kernels in C++, as that of constant_pad_nd, would fix symbolic sizes.
        with mode or nullcontext(), _unchanged(shape_env), enable_python_dispatcher():
            return function(*args, **kwargs) is not NotImplemented
    except Exception as error:  # not decidable here; the trace that follows reports what is wrong
        _LOG.debug("%s on fake tensors failed, assumed to apply: %s", node.target, error)
        return True


@contextlib.contextmanager
def _unchanged(shape_env: ShapeEnv | None) -> Iterator[None]:
    """Refuse guards on sizes inside, and discard unbacked symbols, as their values are discarded.

    A guard would hold for the examples only, and would fix or narrow a size of the program. torch
    logs an error for each that a fake kernel of it attempts.
    """
    if shape_env is None:
        yield
        return
    silent, _FAKE_LOG.disabled = _FAKE_LOG.disabled, True
    try:
        with shape_env.error_on_new_guards(), shape_env.ignore_fresh_unbacked_symbols():
            yield
    finally:
        _FAKE_LOG.disabled = silent


def _with_own_copies(program: ExportedProgram) -> ExportedProgram:
    """Return the program with a clone of the source of each `copy_` into a buffer.

    torch confuses buffers whose new value is one node, as in `a.copy_(b)` for buffers a and b.
    """
    copies = [node for node in program.graph.nodes if node.target is aten.copy_.default]
    if not copies:
        return program
    program = _copy(program)
    for node in program.graph.nodes:
        if node.target is aten.copy_.default:
            source = node.args[1]
            with program.graph.inserting_before(node):
                own = program.graph.call_function(aten.clone.default, (source,))
            own.meta = {**node.meta, "val": source.meta["val"]}
            node.replace_input_with(source, own)
    program.graph_module.recompile()
    return program


def _without_unused_tensors(program: ExportedProgram) -> ExportedProgram:
    """Return the program without its tensors that nothing reads or writes.

    They may be of a layout or type that has no form in MLIR, or that torch cannot trace again.
    """
    used = {node.name for node in program.graph.nodes if node.users}
    signature = program.graph_signature
    changed = set(signature.buffers_to_mutate.values())
    unused = [
        spec
        for spec in signature.input_specs
        if spec.kind in STATE_KINDS and spec.arg.name not in used and spec.target not in changed
    ]
    if not unused:
        return program
    program = _copy(program)
    names = {spec.arg.name for spec in unused}
    for node in program.graph.find_nodes(op="placeholder"):
        if node.name in names:
            program.graph.erase_node(node)
    program.graph_module.recompile()
    kept = [spec for spec in signature.input_specs if spec not in unused]
    return with_graph(
        program, program.graph_module, ExportGraphSignature(kept, signature.output_specs)
    )


def _with_constant_inputs(program: ExportedProgram) -> ExportedProgram:
    """Return the program with numbers for the sizes of inputs that its trace has fixed."""
    if not has_constant_inputs(program.graph):
        return program
    program = _copy(program)
    fix_constant_inputs(program.graph)
    return program


def _with_views_of_owners(program: ExportedProgram) -> ExportedProgram:
    """Return the program with each strided view taken from the tensor that owns the memory."""
    if not has_strided_views(program.graph_module):
        return program
    program = _copy(program)
    take_from_owners(program.graph_module)
    return program


def _copy(program: ExportedProgram) -> ExportedProgram:
    """Return the program with a copy of its graph."""
    module = program.graph_module
    graph = copy.deepcopy(program.graph)
    for original, copied in zip(program.graph.nodes, graph.nodes, strict=True):
        copied.name = original.name  # the signature names nodes, and a copy may rename them
    return with_graph(program, GraphModule(module, graph))
