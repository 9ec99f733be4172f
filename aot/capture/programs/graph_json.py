"""The graph of an exported program as JSON, without its tensors.

The form is torch's own. torch reads its files with pickle, evaluates the sizes in them as Python
and imports the classes that they name; here a file is read as data: tensors come from elsewhere,
the structure of calls from our signature, and sizes are checked to be arithmetic before torch sees
them.
"""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Iterator, Mapping
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram

from ...compat import exported_programs
from ...compat.operators import HigherOrderOperator, OpOverload, schema_of
from ...compat.pytrees import treespec_dumps
from ...spec.errors import ArtifactError, ExportError
from ..guards import shape_env_of
from ..trace import TRACING_LOCK, tracing_settings
from .call_spec import flat_entry, rebuilt

_KEPT_METADATA = ("stack_trace", "nn_module_stack")
"""What is kept of the notes at each node: the user's lines, and the module that it is in."""

_FUNCTIONS = frozenset(
    """Abs Add And CeilDiv CeilToInt CleanDiv Equality ExprCondPair Float FloatPow FloatTrueDiv
    FloorDiv FloorToInt GreaterThan ITE Identity IntTrueDiv Integer
    IsNonOverlappingAndDenseIndicator LShift LessThan Max Min Mod ModularIndexing Mul Not Or
    Piecewise Pow PowByNatural PythonMod RShift Rational RoundDecimal RoundToInt
    StrictGreaterThan StrictLessThan Symbol ToFloat TruncToFloat TruncToInt Unequality Where
    ceiling floor""".split()
)
"""What expressions of sizes are made of, in the form that torch writes (sympy's `srepr`)."""

_NAMES = frozenset(["true", "false", "int_oo", "oo"])
_WORD = re.compile(r"[a-z0-9.+-]+")  # the name of a symbol, or the digits of a number


def graph_to_json(program: ExportedProgram) -> dict[str, Any]:
    """Return the graph of a program, with its signature and the ranges of its sizes.

    Args:
        program: The program; its tensors are named, not contained.

    Raises:
        ExportError: It has operators or values that torch cannot write down; names them.
    """
    signature = program.graph_signature
    for name, constant in program.constants.items():
        if not isinstance(constant, torch.Tensor):
            raise ExportError(f"constant {name!r} is a {type(constant).__name__}: no tensor")
    with TRACING_LOCK, tracing_settings():
        # Containers are ours to write, with classes that torch does not know.
        entry = flat_entry(len(list(_user_inputs(program))), len(signature.user_outputs))
        flat = rebuilt(program, program.graph, signature, entry)
        try:
            text = exported_programs.graph_to_json(flat)
        except Exception as error:
            reason = " ".join(str(error).split())[:400]
            raise ExportError(f"torch cannot write this program down: {reason}") from error
    found: dict[str, Any] = json.loads(text)
    found["guards_code"] = []  # Python code; the signature has what it says
    found["hints"] = {str(symbol): int(value) for symbol, value in _hints(program).items()}
    found["graph_module"]["module_call_graph"] = []
    found["graph_module"]["metadata"] = {}
    for part in _objects(found):
        if _is_node(part):
            part["metadata"] = _kept(part["metadata"])
    return found


def graph_from_json(
    data: Mapping[str, Any],
    state_dict: dict[str, torch.Tensor],
    constants: dict[str, torch.Tensor],
) -> ExportedProgram:
    """Return the program of a graph, over flat tuples.

    Args:
        data: What `graph_to_json` returned.
        state_dict: The program's parameters and persistent buffers.
        constants: Its other tensors.

    Raises:
        ArtifactError: It is no such graph, or was written by another version of torch.
    """
    try:
        written_by = data.get("torch_version")
        found = _without_code(data)
        hints = {str(symbol): int(value) for symbol, value in found.pop("hints").items()}
        with TRACING_LOCK, tracing_settings():
            program = exported_programs.program_from_json(found, state_dict, constants)
            _set_hints(program, hints)
            _set_containers(program)
    except ArtifactError:
        raise
    except Exception as error:  # torch checks little, and fails in many ways
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise ArtifactError(
            f"no graph that torch {torch.__version__} reads (torch {written_by} wrote it): "
            f"{reason}; export the programs again with this version"
        ) from error
    _refuse_other_calls(program)
    return program


def _without_code(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a graph in JSON in which nothing is left that torch would run or import.

    Raises:
        ArtifactError: A size in it is more than arithmetic.
    """
    found: dict[str, Any] = json.loads(json.dumps(data))
    module = found["graph_module"]
    inputs = sum("user_input" in spec or "constant_input" in spec for spec in _specs(module, "in"))
    outputs = sum("user_output" in spec for spec in _specs(module, "out"))
    module["module_call_graph"] = [_entry_to_json(inputs, outputs)]
    module["metadata"], found["guards_code"] = {}, []
    # The ranges of expressions follow from those of their symbols, and torch takes no others.
    ranges = found["range_constraints"].items()
    found["range_constraints"] = {name: bounds for name, bounds in ranges if name.isalnum()}
    for part in _objects(found):
        if "expr_str" in part:
            _refuse_code(part["expr_str"])
        if _is_node(part):
            part["metadata"] = _kept(part["metadata"])
    return found


def _entry_to_json(inputs: int, outputs: int) -> dict[str, Any]:
    called = flat_entry(inputs, outputs).signature
    assert called is not None
    specs = {name: treespec_dumps(getattr(called, name)) for name in ("in_spec", "out_spec")}
    return {"fqn": "", "signature": {"inputs": [], "outputs": [], **specs}}


def _specs(module: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    specs: list[Mapping[str, Any]] = module["signature"][f"{kind}put_specs"]
    return specs


def _user_inputs(program: ExportedProgram) -> Iterator[object]:
    kind = torch.export.graph_signature.InputKind.USER_INPUT
    yield from (spec for spec in program.graph_signature.input_specs if spec.kind is kind)


def _objects(data: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects within JSON data."""
    waiting = [data]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            yield item
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)


def _kept(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in metadata.items() if key in _KEPT_METADATA}


def _is_node(part: Mapping[str, Any]) -> bool:
    return {"target", "inputs", "metadata"} <= part.keys()


def _hints(program: ExportedProgram) -> dict[Any, Any]:
    """Return the example size of each symbol of a program; it can be changed through the dict."""
    environment = shape_env_of(program)
    if environment is None:
        return {}
    name = "backed_var_to_val" if hasattr(environment, "backed_var_to_val") else "var_to_val"
    found: dict[Any, Any] = getattr(environment, name)  # the older name, in older versions
    return found


def _set_hints(program: ExportedProgram, given: Mapping[str, int]) -> None:
    """Set the example sizes; torch's reader notes those of expressions, which are none."""
    hints = _hints(program)
    known = {str(symbol): symbol for symbol in program.range_constraints}
    hints.clear()
    hints.update({known[name]: sympy.Integer(v) for name, v in given.items() if name in known})


def _set_containers(program: ExportedProgram) -> None:
    """Have tuples and lists where torch's traces have them; its reader does not tell them apart."""
    for node in _nodes(program):
        if isinstance(node.target, HigherOrderOperator):
            node.args = tuple(tuple(a) if isinstance(a, list) else a for a in node.args)
        value = node.meta.get("val")
        if isinstance(node.target, OpOverload) and isinstance(value, tuple):
            if len(schema_of(node.target).returns) == 1:
                node.meta["val"] = list(value)
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            module.recompile()


def _nodes(program: ExportedProgram) -> Iterator[torch.fx.Node]:
    """Yield the nodes of a program's graph and of those within it."""
    for module in program.graph_module.modules():
        if isinstance(module, torch.fx.GraphModule):
            yield from module.graph.nodes


def _refuse_code(text: Any) -> None:
    """Refuse a size that is more than arithmetic: torch evaluates it as Python.

    Raises:
        ArtifactError: It is.
    """
    try:
        sound = all(_is_arithmetic(node) for node in ast.walk(ast.parse(text, mode="eval")))
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        sound = False
    if not sound:
        raise ArtifactError(f"a size that is no expression of sizes: {text!r:.100}")


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _FUNCTIONS or node.id in _NAMES
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str):
            return _WORD.fullmatch(node.value) is not None
        return isinstance(node.value, (bool, int, float))
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS
    return isinstance(node, (ast.Expression, ast.Load, ast.keyword, ast.UnaryOp, ast.USub))


def _refuse_other_calls(program: ExportedProgram) -> None:
    """Refuse a graph that calls something else than operators.

    Raises:
        ArtifactError: It does.
    """
    # The functions of Python that graphs call on sizes and tuples.
    plain = {*exported_programs.size_functions(), operator.getitem}
    for node in _nodes(program):
        if node.op in ("call_method", "call_module") or (
            node.op == "call_function"
            and not isinstance(node.target, (OpOverload, HigherOrderOperator))
            and node.target not in plain
        ):
            raise ArtifactError(f"a graph that calls {node.target!s:.100}, which is no operator")
