"""Captured programs as torch's own: called with the arguments of the user's function.

`capture` traces over flat tuples. Here such a program gets torch's description of the structure
around them, and its constants back, so that `program.module()` is called as the function was.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.export import ExportedProgram, ModuleCallEntry, ModuleCallSignature
from torch.export.graph_signature import (
    ConstantArgument,
    ExportGraphSignature,
    InputKind,
    InputSpec,
    OutputKind,
    OutputSpec,
)

from pelton.runtime.call import pytrees
from pelton.runtime.call.signature import ConstantSpec, Leaf, Signature

from ...compat.pytrees import TreeSpec, tree_flatten


class _Mark(int):
    """The index of a leaf, which no container takes for a value of its own."""


@dataclass(frozen=True)
class CallSpec:
    """torch's description of the arguments and results of a program.

    Attributes:
        inputs: Each leaf of the arguments, by its index in the signature; None where it is None.
        outputs: Each leaf of the result, likewise.
        entry: torch's own form.
    """

    inputs: tuple[int | None, ...]
    outputs: tuple[int | None, ...]
    entry: ModuleCallEntry


def call_spec(signature: Signature) -> CallSpec | None:
    """Return torch's description of a signature's structure; None where it has no form for it.

    torch knows lists, tuples, named tuples, dicts, and the classes that were registered with it.

    Example:
        >>> from pelton.runtime.call.signature import Parameter
        >>> tree = ["tuple", [0, None]]
        >>> signature = Signature("f", (Parameter("x", "POSITIONAL_OR_KEYWORD", tree),),
        ...                       (ConstantSpec(1),), 0, (ConstantSpec(2),))
        >>> call_spec(signature).inputs
        (0, None)
    """
    marks = [_Mark(index) for index in range(max(len(signature.inputs), len(signature.results)))]
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    names: list[str] = []
    for parameter in signature.parameters:
        value = pytrees.unflatten(parameter.tree, marks)
        if parameter.kind == "VAR_POSITIONAL":
            args.extend(value)
            names.extend(f"{parameter.name}_{index}" for index in range(len(value)))
        elif parameter.kind == "VAR_KEYWORD":
            kwargs.update(value)
            names.extend(value)
        else:
            names.append(parameter.name)
            if parameter.kind == "KEYWORD_ONLY":
                kwargs[parameter.name] = value
            else:
                args.append(value)
    inputs, in_spec = _flatten((tuple(args), kwargs), len(signature.inputs))
    outputs, out_spec = _flatten(
        pytrees.unflatten(signature.result_tree, marks), len(signature.results)
    )
    if inputs is None or outputs is None:
        return None
    called = ModuleCallSignature([], [], in_spec, out_spec, names)
    return CallSpec(inputs, outputs, ModuleCallEntry("", called))


def flat_entry(inputs: int, outputs: int) -> ModuleCallEntry:
    """Return the description of a program over flat tuples of so many values."""
    _, in_spec = tree_flatten(((0,) * inputs, {}))
    _, out_spec = tree_flatten((0,) * outputs)
    return ModuleCallEntry("", ModuleCallSignature([], [], in_spec, out_spec))


def _flatten(value: Any, count: int) -> tuple[tuple[int | None, ...] | None, TreeSpec]:
    """Return the leaves as torch orders them; None unless they are all the marks, in order."""
    leaves, spec = tree_flatten(value)
    marked = [leaf for leaf in leaves if leaf is not None]
    if not all(isinstance(leaf, _Mark) for leaf in marked) or marked != list(range(count)):
        return None, spec
    return tuple(None if leaf is None else int(leaf) for leaf in leaves), spec


def with_call_spec(program: ExportedProgram, signature: Signature) -> ExportedProgram:
    """Return a captured program that is called as its function is; the given one is left as it is.

    Where torch has no form for a container of the function, it stays a program over flat tuples.

    Args:
        program: A program over flat tuples, as `capture` returns it.
        signature: What its function takes and gives.
    """
    spec = call_spec(signature)
    if spec is None:
        return program
    graph = copy.deepcopy(program.graph)
    for original, copied in zip(program.graph.nodes, graph.nodes, strict=True):
        copied.name = original.name  # the signature names nodes, and a copy may rename them
    inputs = list(_inputs(program, graph, spec.inputs, signature.inputs))
    outputs = _outputs(program, graph, spec.outputs, signature.results)
    return rebuilt(program, graph, ExportGraphSignature(inputs, outputs), spec.entry)


def rebuilt(
    program: ExportedProgram,
    graph: torch.fx.Graph,
    signature: ExportGraphSignature,
    entry: ModuleCallEntry,
) -> ExportedProgram:
    """Return a program with another graph, signature or description of its calls.

    Args:
        program: The program, which stays as it is.
        graph: The graph.
        signature: The inputs and outputs of the graph.
        entry: torch's description of the structure of arguments and results.
    """
    return ExportedProgram(
        root=program.graph_module,
        graph=graph,
        graph_signature=signature,
        state_dict=program.state_dict,
        range_constraints=dict(program.range_constraints),
        module_call_graph=[entry],
        constants=program.constants,
        verifiers=program.verifiers,
    )


def _inputs(
    program: ExportedProgram,
    graph: torch.fx.Graph,
    order: Sequence[int | None],
    leaves: Sequence[Leaf],
) -> Iterator[InputSpec]:
    """Yield the inputs of the graph, to which placeholders of the constants are added."""
    specs = list(program.graph_signature.input_specs)
    given = iter([spec for spec in specs if spec.kind is InputKind.USER_INPUT])
    yield from (spec for spec in specs if spec.kind is not InputKind.USER_INPUT)
    placeholders = {node.name: node for node in graph.nodes if node.op == "placeholder"}
    last = list(placeholders.values())[: len(specs) - len(program.graph_signature.user_inputs)]
    place = last[-1] if last else None
    for index in order:
        leaf = ConstantSpec(None) if index is None else leaves[index]
        if not isinstance(leaf, ConstantSpec):
            spec = next(given)
            place = placeholders[spec.arg.name]
            yield spec
            continue
        with graph.inserting_after(place) if place else graph.inserting_before():
            place = graph.placeholder("constant")
        place.target = place.name  # which is unique, and becomes the name of an argument
        place.meta["val"] = leaf.value
        yield InputSpec(InputKind.USER_INPUT, ConstantArgument(place.name, leaf.value), None)


def _outputs(
    program: ExportedProgram,
    graph: torch.fx.Graph,
    order: Sequence[int | None],
    leaves: Sequence[Leaf],
) -> list[OutputSpec]:
    """Return the outputs of the graph, to which the constants are added."""
    node = graph.output_node()
    values: Iterator[Any] = iter(cast("tuple[Any, ...]", node.args[0]))
    specs = iter(program.graph_signature.output_specs)
    made: list[OutputSpec] = []
    results: list[Any] = []
    for index in order:
        leaf = ConstantSpec(None) if index is None else leaves[index]
        if isinstance(leaf, ConstantSpec):
            made.append(OutputSpec(OutputKind.USER_OUTPUT, ConstantArgument("", leaf.value), None))
            results.append(leaf.value)
        else:
            made.append(next(specs))
            results.append(next(values))
    node.args = (tuple(results),)
    return made
