"""Explanation of torch.compile: graphs, breaks, guards, and the operators each target takes."""

from __future__ import annotations

import collections
import importlib.util
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ..capture.trace import TRACING_LOCK, tracing_settings
from ..compat import dynamo
from ..compat.operators import OperatorBase, OpOverload
from ..decompositions import current_aot_decompositions
from ..decompositions.legalize import applies
from ..raising.onnx import unsupported_operators
from ..spec.errors import ExportError, SourceLocation
from ..spec.locations import is_user_file, location_of_node
from .compile import module_of, prepared
from .legalize import DECOMPOSED_FIRST

IREE, TENSORRT = "cpu, cuda", "tensorrt"
"""The two ways to a program: IREE's torch dialect, and ONNX."""

WHOLE, DECOMPOSED, MISSING = "whole", "decomposed", "missing"
"""How a target takes an operator."""


@dataclass(frozen=True)
class Break:
    """A place where Python runs between two graphs.

    Attributes:
        reason: Why, in torch's words.
        explanation: The same at more length.
        hint: What can be done, or empty.
        location: The user's line, if torch knows it.
    """

    reason: str
    explanation: str
    hint: str
    location: SourceLocation | None


@dataclass(frozen=True)
class Operator:
    """An operator of a graph.

    Attributes:
        name: Such as `aten.mm.default`.
        count: How many times it is there.
        taken: How each target takes it: `whole`, `decomposed` or `missing`.
        location: The user's line of the first.
    """

    name: str
    count: int
    taken: Mapping[str, str]
    location: SourceLocation | None


@dataclass(frozen=True)
class Graph:
    """A graph, as it is compiled.

    Attributes:
        operators: Its operators, the most frequent first.
        refusals: By target: why it cannot take the graph.
        unchecked: By target: why that was not looked at.
        sizes: Its dynamic sizes, such as `x.shape[0]: 2 or more`.
        location: The user's line of its first operator.
    """

    operators: tuple[Operator, ...]
    refusals: Mapping[str, str] = field(default_factory=dict)
    unchecked: Mapping[str, str] = field(default_factory=dict)
    sizes: tuple[str, ...] = ()
    location: SourceLocation | None = None


@dataclass(frozen=True)
class Guards:
    """What is checked before each call; where it does not hold, torch compiles again.

    Attributes:
        sizes: Conditions on sizes.
        tensors: The tensors whose type, device, layout and fixed sizes are compared.
        values: Conditions on Python values.
        objects: How many other checks there are, by kind.
    """

    sizes: tuple[str, ...] = ()
    tensors: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    objects: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Explanation:
    """What torch.compile makes of a program for given inputs.

    Attributes:
        graphs: In the order they are met.
        breaks: The places where Python runs between them.
        guards: What is checked before each call.
    """

    graphs: tuple[Graph, ...]
    breaks: tuple[Break, ...]
    guards: Guards


def explain(program: Callable[..., Any], *args: Any, **kwargs: Any) -> Explanation:
    """Run a program once under torch.compile, and say what it is made of.

    The operators are computed in eager, without gradients. What torch has compiled before is
    forgotten, as `torch._dynamo.explain` does too.

    Args:
        program: A module or function.
        args: Its arguments; sizes marked by `torch._dynamo.mark_dynamic` are dynamic.
        kwargs: Its keyword arguments.

    Raises:
        ExportError: The program cannot be run.

    Example:
        >>> found = explain(lambda x: torch.relu(x) + 1, torch.ones(2))
        >>> [(operator.name, operator.count) for operator in found.graphs[0].operators]
        [('aten.relu.default', 1), ('aten.add.Tensor', 1)]
    """
    graphs: list[Graph] = []
    breaks: list[Break] = []
    guards: list[Any] = []

    def record(module: GraphModule, _: Sequence[Any]) -> Callable[[list[Any]], Any]:
        graphs.append(_graph(module))
        interpreter = torch.fx.Interpreter(module)
        return dynamo.mark_boxed(lambda arguments: interpreter.boxed_run(arguments))

    def backend(module: GraphModule, inputs: Sequence[Any]) -> Any:
        reason: Any = module.compile_subgraph_reason
        if reason is not None and reason.graph_break:
            breaks.append(_break(reason))
        compiler = dynamo.aot_autograd(fw_compiler=record, decompositions=DECOMPOSED_FIRST)
        return compiler(module, inputs)

    dynamo.reset()
    try:
        compiled = dynamo.optimize(backend, guards.extend)(program)
        with torch.no_grad():
            compiled(*args, **kwargs)
    except ExportError:
        raise
    except Exception as error:
        text = " ".join(str(error).split())[:600]
        raise ExportError(f"the program cannot be run: {type(error).__name__}: {text}") from error
    finally:
        dynamo.reset()
    return Explanation(tuple(graphs), tuple(dict.fromkeys(breaks)), _guards(guards))


def _break(reason: Any) -> Break:
    lines = [line.strip() for line in str(reason.reason).splitlines()]
    stated: collections.defaultdict[str, str] = collections.defaultdict(str)
    for line in lines:
        name, colon, text = line.partition(": ")
        if colon and name in ("Explanation", "Hint") and not stated[name]:
            stated[name] = text
    stack = reason.user_stack or ()
    places = [SourceLocation(f.filename, f.lineno) for f in stack if is_user_file(f.filename)]
    place = places[-1] if places else None
    return Break(lines[0] if lines else "", stated["Explanation"], stated["Hint"], place)


def _graph(module: GraphModule) -> Graph:
    nodes = [node for node in module.graph.nodes if node.op == "call_function"]
    counted = collections.Counter(_name(node) for node in nodes if _is_operator(node))
    first = {_name(node): node for node in reversed(nodes)}
    refusals, unchecked, missing = _checked(module)
    ways = [way for way in (IREE, TENSORRT) if way not in unchecked]
    locations = (location_of_node(node) for node in nodes)
    return Graph(
        tuple(
            Operator(
                name,
                count,
                {way: _taken(first[name], way, missing.get(way, ())) for way in ways},
                location_of_node(first[name]),
            )
            for name, count in counted.most_common()
        ),
        refusals,
        unchecked,
        tuple(_sizes(module)),
        next((place for place in locations if place is not None), None),
    )


def _name(node: Node) -> str:
    return str(node.target)


def _is_operator(node: Node) -> bool:
    return isinstance(node.target, OperatorBase)


def _checked(
    module: GraphModule,
) -> tuple[dict[str, str], dict[str, str], dict[str, Sequence[str]]]:
    """Return why targets refuse a graph, why they were not asked, and which operators they lack."""
    refusals: dict[str, str] = {}
    unchecked: dict[str, str] = {}
    missing: dict[str, Sequence[str]] = {}
    with TRACING_LOCK:
        try:
            parts, _ = prepared(module)
        except ExportError as error:
            lacking = getattr(error, "operators", ())
            return {IREE: str(error), TENSORRT: str(error)}, {}, dict.fromkeys(_WAYS, lacking)
        if parts.program is None:
            return {}, {}, {}
        try:
            module_of(parts.program)
        except ExportError as error:
            refusals[IREE], missing[IREE] = str(error), getattr(error, "operators", ())
        _check_onnx(parts.program, refusals, unchecked, missing)
    return refusals, unchecked, missing


_WAYS = (IREE, TENSORRT)


def _check_onnx(
    program: ExportedProgram,
    refusals: dict[str, str],
    unchecked: dict[str, str],
    missing: dict[str, Sequence[str]],
) -> None:
    if importlib.util.find_spec("onnxscript") is None:
        unchecked[TENSORRT] = "onnxscript is not installed: pip install 'pelton[onnx]'"
        return
    with tracing_settings():
        missing[TENSORRT] = unsupported_operators(program)
    if missing[TENSORRT]:
        listed = ", ".join(missing[TENSORRT])
        refusals[TENSORRT] = f"operators that have no form in ONNX: {listed}"


def _taken(node: Node, way: str, missing: Sequence[str]) -> str:
    if any(
        name.removesuffix(".default") == _name(node).removesuffix(".default") for name in missing
    ):
        return MISSING
    if way == TENSORRT or not isinstance(node.target, OpOverload):
        return WHOLE
    function = current_aot_decompositions().get(node.target)
    return DECOMPOSED if function is not None and applies(function, node) else WHOLE


def _plain(name: str) -> str:
    return name.removesuffix(".default")


def _sizes(module: GraphModule) -> Iterable[str]:
    """Yield the dynamic sizes of a graph's inputs with their ranges."""
    seen = set()
    for node in module.graph.nodes:
        value = node.meta.get("val") if node.op == "placeholder" else None
        if not isinstance(value, torch.SymInt) or value.node.expr in seen:
            continue
        seen.add(value.node.expr)
        environment = value.node.shape_env
        bounds = environment.var_to_range.get(value.node.expr)
        sources = environment.var_to_sources.get(value.node.expr, ())
        name = _readable(sources[0].name) if sources else str(value.node.expr)
        yield f"{name}: {_range(bounds)}" if bounds is not None else name


def _range(bounds: Any) -> str:
    low, high = int(bounds.lower), bounds.upper
    finite = getattr(high, "is_Integer", False) and high < 2**62
    return f"{low} to {int(high)}" if finite else f"{low} or more"


def _guards(found: Iterable[Any]) -> Guards:
    sizes: dict[str, None] = {}
    tensors: dict[str, None] = {}
    values: dict[str, None] = {}
    objects: collections.Counter[str] = collections.Counter()
    for guard in found:
        kind = guard.create_fn_name()
        if kind == "SHAPE_ENV":
            sizes.update(dict.fromkeys(map(_readable, guard.code_list or ())))
        elif kind == "TENSOR_MATCH":
            tensors[_readable(guard.name)] = None
        elif kind in ("EQUALS_MATCH", "CONSTANT_MATCH"):
            values.update(dict.fromkeys(map(_readable, guard.code_list or ())))
        elif guard.name:
            objects[kind.lower().replace("_", " ")] += 1
    return Guards(tuple(sizes), tuple(tensors), tuple(values), dict(objects))


def _readable(code: str) -> str:
    """Return torch's spelling of a source in the user's.

    Example:
        >>> _readable("L['x'].size()[0] % 2 == 0")
        'x.shape[0] % 2 == 0'
        >>> _readable("L['self']._modules['fc']._parameters['weight']")
        'self.fc.weight'
    """
    code = re.sub(r"\b[LG]\['(\w+)'\]", r"\1", code)
    code = re.sub(r"\._(?:modules|parameters|buffers)\['(\w+)'\]", r".\1", code)
    return code.replace(".size()", ".shape")
