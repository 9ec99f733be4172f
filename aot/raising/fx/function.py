"""Raising of a function: the handlers, the refusal of unsupported operations, the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from iree.compiler.ir import Operation, StringAttr, Type, Value
from torch.fx import Node

from pelton.runtime.call import pytrees
from pelton.runtime.call.signature import ConstantSpec, Leaf, ScalarSpec, Signature, TensorSpec

from ...ir.module import CUSTOM_OP
from ...spec.errors import SourceLocation, UnsupportedOpError
from ...spec.locations import location_of_op, with_lines
from . import (
    arith_ops,
    control_flow,
    globals_and_calls,
    tensor_ops,
    torch_numbers,
    torch_operators,
    torch_values,
)
from .branches import run_region
from .calls import CALLS, operations_run_by
from .raised import Port, Raised
from .raiser import Handler, HandlerTable, Options, Raiser, identifier
from .scope import dtype_of
from .source import Global, ModuleSource, symbol_of
from .torch_operators import name_of, overload_of, raise_operator
from .types import is_python_number, torch_dtype, value_dtype

aten = torch.ops.aten

HANDLERS: HandlerTable = {
    **torch_values.HANDLERS,
    **torch_numbers.HANDLERS,
    **torch_operators.HANDLERS,
    **arith_ops.HANDLERS,
    **tensor_ops.HANDLERS,
    **globals_and_calls.HANDLERS,
    **control_flow.HANDLERS,
}
"""The operations with a handler of their own; the others are operators that torch has."""

_PARTS_OF_OTHERS = (*control_flow.TERMINATORS, control_flow.CHECK)


def raise_function(
    source: ModuleSource, name: str, *, weights_as_inputs: bool = False, effects: bool = True
) -> Raised:
    """Return a function of a module as a torch.fx graph.

    Args:
        source: The module, from `open_source`.
        name: The function.
        weights_as_inputs: Make the weights inputs of the graph; else they are its buffers.
        effects: Keep the checks and the printing of the program in the graph.

    Raises:
        UnsupportedOpError: Operations that have no form in torch; all of them, with the lines.
        ParameterError: External parameters are missing, or of another type or shape.
        ExportError: There is no such function.
    """
    function = source.function(name)
    refuse_unsupported(source, function)
    source.check_parameters(_used_globals(source, function))
    while source.initializers:
        _initialize(source, source.initializers.pop(0))
    raiser = Raiser(source, Options(weights_as_inputs, effects), handler_of)
    return _Building(raiser, function, source.signatures[name]).raised()


def _initialize(source: ModuleSource, initializer: Operation) -> None:
    """Run an initializer in eager: what it stores is what globals have at first."""
    refuse_unsupported(source, initializer)
    raiser = Raiser(source, Options(effects=False), handler_of)
    run_region(raiser, initializer.regions[0])
    module = raiser.root.finish(tuple(raiser.state.values()))
    items = [source.globals[symbol] for symbol in raiser.state_inputs]
    with torch.no_grad():
        values = module(*(_initial(source, item) for item in items))
    for symbol, value in zip(raiser.state, values, strict=True):
        source.initialize(source.globals[symbol], value)


def handler_of(op: Operation) -> Handler:
    """Return the handler of an operation that `refuse_unsupported` let pass."""
    return HANDLERS.get(op.name, raise_operator)


def refuse_unsupported(source: ModuleSource, function: Operation) -> None:
    """Refuse a function with operations that have no form in torch.

    Raises:
        UnsupportedOpError: Names all of them, with the user's lines.
    """
    missing: list[tuple[str, SourceLocation | None]] = []
    calls: dict[str, SourceLocation | None] = {}
    for op in operations_run_by(source, function):
        if op.name in CALLS:
            calls.setdefault(symbol_of(op, "callee"), location_of_op(op))
        if not _is_supported(op):
            name, location = name_of(op).removeprefix("torch."), location_of_op(op)
            body = _custom_op_body(op)
            if body is not None:
                name = f"custom operator {StringAttr(body.attributes[CUSTOM_OP]).value}"
                location = calls.get(symbol_of(body))
            missing.append((name, location))
    if missing:
        listed = with_lines(missing)
        raise UnsupportedOpError(
            f"operations that have no form in torch: {'; '.join(listed.values())}",
            operators=tuple(listed),
        )


def _custom_op_body(op: Operation) -> Operation | None:
    """Return the function around an operation if it is the body of a custom operator."""
    while op is not None and op.name != "func.func":
        op = op.parent
    return op if op is not None and CUSTOM_OP in op.attributes else None


def _is_supported(op: Operation) -> bool:
    if op.name in HANDLERS or op.name in _PARTS_OF_OTHERS:
        return True
    return op.name.startswith("torch.") and overload_of(name_of(op)) is not None


def _used_globals(source: ModuleSource, function: Operation) -> Iterator[Global]:
    symbols = dict.fromkeys(
        symbol_of(op, "global")
        for op in operations_run_by(source, function)
        if op.name in ("util.global.load", "util.global.store")
    )
    return (source.globals[symbol] for symbol in symbols)


class _Building:
    """One function on its way: its inputs, its body, its outputs, and what they are called."""

    def __init__(self, raiser: Raiser, function: Operation, signature: Signature) -> None:
        self._raiser = raiser
        self._signature = signature
        self._region = function.regions[0]
        self._block = self._region.blocks[0]
        self._ports: dict[Node, Port] = {}

    def raised(self) -> Raised:
        raiser = self._raiser
        arguments = [value.type for value in self._block.arguments]
        raiser.bind_arguments(self._block, self._arguments(arguments))
        returned = run_region(raiser, self._region)
        outputs, nodes = self._results(returned)
        for symbol in [
            s for s, now in raiser.state.items() if now is not raiser.state_inputs.get(s)
        ]:
            item = raiser.source.globals[symbol]
            outputs.append(_state_port(item, f"new_state.{item.name}"))
            nodes.append(raiser.state[symbol])
        state = self._state()
        module = raiser.root.finish(tuple(self._own(nodes)))
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        return Raised(
            name=self._signature.name,
            graph_module=module,
            signature=self._signature,
            inputs=tuple(self._ports[node] for node in placeholders),
            outputs=tuple(outputs),
            initial_state={item.name: _initial(raiser.source, item) for item in state},
            parameters={
                _parameter_name(item): raiser.source.initial(item)
                for item in (raiser.source.globals[symbol] for symbol in raiser.weights)
            },
        )

    def _arguments(self, types: Sequence[Type]) -> list[Node]:
        leaves = [
            (path, leaf)
            for path, leaf in self._signature.named_inputs()
            if not isinstance(leaf, ConstantSpec)
        ]
        nodes = []
        for (path, leaf), type_ in zip(leaves, types, strict=True):
            symbolic = isinstance(leaf, ScalarSpec) and is_python_number(type_)
            dtype = _leaf_dtype(leaf, type_)
            name = self._raiser.unique(identifier(path))
            node = self._raiser.root.placeholder(name, None if symbolic else dtype)
            self._ports[node] = _user_port(port_name(path), path, leaf, dtype)
            nodes.append(self._raiser.as_number(node) if _is_torch_number(type_) else node)
        return nodes

    def _results(self, returned: Sequence[Value]) -> tuple[list[Port], list[Node]]:
        paths = pytrees.leaf_paths(self._signature.result_tree, "result")
        leaves = [
            (paths[index], leaf)
            for index, leaf in enumerate(self._signature.results)
            if not isinstance(leaf, ConstantSpec)
        ]
        ports, nodes = [], []
        for (path, leaf), value in zip(leaves, returned, strict=True):
            dtype = _leaf_dtype(leaf, value.type)
            nodes.append(self._raiser.as_tensor(self._raiser.value(value), dtype))
            ports.append(_user_port(port_name(path), path, leaf, dtype))
        return ports, nodes

    def _state(self) -> list[Global]:
        """Order the inputs: the caller's, state, parameters; return the state that is used."""
        raiser = self._raiser
        items = raiser.source.globals
        for symbol in sorted(raiser.state_inputs, key=[*items].index):
            port = _state_port(items[symbol], f"state.{items[symbol].name}")
            self._ports[raiser.state_inputs[symbol]] = port
        for symbol, node in raiser.weights.items():
            self._ports[node] = _parameter_port(items[symbol])
        raiser.root.order([*self._ports])
        used = {**raiser.state_inputs, **raiser.state}
        return [item for symbol, item in items.items() if symbol in used]

    def _own(self, nodes: Sequence[Node]) -> list[Node]:
        """Return results that are no inputs or weights, and differ from each other."""
        made: list[Node] = []
        for node in nodes:
            if node.op in ("placeholder", "get_attr") or node in made:
                node = self._raiser.emit(aten.clone.default, node, dtype=dtype_of(node))
            made.append(node)
        return made


def _leaf_dtype(leaf: Leaf, type_: Type) -> torch.dtype:
    return torch_dtype(leaf.dtype) if isinstance(leaf, TensorSpec) else value_dtype(type_)


def _is_torch_number(type_: Type) -> bool:
    return str(type_) in ("!torch.float", "!torch.bool")


def port_name(path: str) -> str:
    """Return the name of an input or output for a path of the signature.

    Example:
        >>> port_name("cache['keys'][0]"), port_name("result.logits")
        ('cache.keys.0', 'result.logits')
    """
    for old, new in (("['", "."), ("']", ""), ("[", "."), ("]", "")):
        path = path.replace(old, new)
    return path


def _user_port(name: str, path: str, leaf: Leaf, dtype: torch.dtype) -> Port:
    if isinstance(leaf, TensorSpec):
        return Port(name, "user", path, dtype, leaf.shape)
    size = leaf.size if isinstance(leaf, ScalarSpec) else None
    return Port(name, "user", path, dtype, (), is_scalar=True, size=size)


def _state_port(item: Global, name: str) -> Port:
    return Port(name, "state", item.name, item.dtype, item.shape, is_scalar=item.is_number)


def _parameter_name(item: Global) -> str:
    return "parameter." + (".".join(item.external) if item.external else item.symbol)


def _parameter_port(item: Global) -> Port:
    origin = "::".join(item.external) if item.external else item.symbol
    return Port(_parameter_name(item), "parameter", origin, item.storage, item.shape)


def _initial(source: ModuleSource, item: Global) -> torch.Tensor:
    value = source.initial(item)
    return value if value.dtype == item.dtype else value.view(item.dtype)
