"""Workload ordinals: the sizes from which the workgroup count of a dispatch follows.

A dispatch passes the sizes that its workgroup count depends on, its workload, and the dispatched
function states for each size that it reads which of them it is, by an operation
`iree_tensor_ext.dispatch.workload.ordinal`. Where one size occurs twice in a workload, IREE
(`iree-stream-fold-uniform-operands`) drops the second and renumbers the ordinals, but sets those of
the second to 0 (seen in 3.13). Then too few workgroups may run, and the end of a result is not
written: a rotary embedding of dynamic length is zero from element 65 of a row on. The right ordinal
follows from the dispatch, which passes each size to the function as a push constant as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from iree.compiler.ir import (
    ArrayAttr,
    Attribute,
    Block,
    IntegerAttr,
    Operation,
    OpResult,
    StringAttr,
    SymbolRefAttr,
    Value,
)

from ..errors import CompilerFailed
from ..linalg import operations_in

_ORDINAL = "iree_tensor_ext.dispatch.workload.ordinal"
_DISPATCH = "stream.cmd.dispatch"
_CONVERSIONS = frozenset(
    f"arith.{name}"
    for name in ("extsi", "extui", "index_cast", "index_castui", "ori", "shli", "shrui", "trunci")
)
"""How a size is passed: as an integer of 32 bits or in two halves."""

Key = Any
"""An expression that identifies a size: sizes of equal keys are equal."""


@dataclass
class _Executable:
    """A dispatched function and its dispatches.

    Attributes:
        ordinals: The workload ordinals in it.
        dispatches: Of each dispatch, the keys of its workload and of its push constants.
    """

    ordinals: list[Operation] = field(default_factory=list)
    dispatches: list[tuple[list[Key], list[Key]]] = field(default_factory=list)


def fix_workload_ordinals(module_op: Operation) -> None:
    """Correct the workload ordinals in all dispatched functions.

    Args:
        module_op: A module at the end of the phase `executable-sources`; changed in place.

    Raises:
        CompilerFailed: An ordinal is wrong, and the right one does not follow from the dispatches.
    """
    for name, function in _executables(module_op).items():
        for ordinal in function.ordinals:
            _fix(name, ordinal, function.dispatches)


def _fix(name: str, ordinal: Operation, dispatches: list[tuple[list[Key], list[Key]]]) -> None:
    """Set an ordinal to one that is right for all dispatches of its function.

    Args:
        name: The function, for messages.
        ordinal: The operation.
        dispatches: As in `_Executable`.

    Raises:
        CompilerFailed: It is 0, as IREE's fault leaves it, and no ordinal fits all dispatches.
    """
    stated = IntegerAttr(ordinal.attributes["ordinal"])
    fitting: set[int] | None = None
    for workload, constants in dispatches:
        size = _key_in_function(ordinal.operands[0], constants)
        equal = {position for position, key in enumerate(workload) if key == size}
        fitting = equal if fitting is None else fitting & equal
    if fitting is None or stated.value in fitting:
        return
    if fitting:
        ordinal.attributes["ordinal"] = IntegerAttr.get(stated.type, min(fitting))
    elif stated.value == 0:
        raise CompilerFailed(
            f"error: IREE numbers the workload ordinals of {name} wrongly, and the right one does "
            "not follow from its dispatches"
        )


def _executables(module_op: Operation) -> dict[str, _Executable]:
    """Return the dispatched functions by their symbol, such as `exe::variant::function`."""
    found: dict[str, _Executable] = {}
    for op in operations_in(module_op, _ORDINAL, _DISPATCH):
        if op.name == _ORDINAL:
            found.setdefault(_function_name(op), _Executable()).ordinals.append(op)
            continue
        for entry in ArrayAttr(op.attributes["entry_points"]):
            name = "::".join(SymbolRefAttr(entry).value)
            found.setdefault(name, _Executable()).dispatches.append(_keys_of(op))
    return found


def _function_name(op: Operation) -> str:
    """Return the symbol of the function that an operation is in."""
    symbols = [
        StringAttr(parent.attributes["sym_name"]).value
        for parent in _parents(op)
        if parent.name in ("func.func", "hal.executable.variant", "hal.executable")
    ]
    return "::".join(reversed(symbols))


def _parents(op: Operation) -> Iterator[Operation]:
    parent = op.parent
    while parent is not None:
        yield parent.operation
        parent = parent.operation.parent


def _keys_of(dispatch: Operation) -> tuple[list[Key], list[Key]]:
    """Return the keys of a dispatch's workload, and those of its push constants."""
    workload, constants = list(dispatch.attributes["operandSegmentSizes"])[:2]
    keys = [_key(value) for value in list(dispatch.operands)[: workload + constants]]
    return keys[:workload], keys[workload:]


def _key(value: Value) -> Key:
    """Return the expression that computes a value, without conversions between integers."""
    op = _owner(value)
    if op is None or not op.name.startswith(("arith.", "util.assume.int")):
        return value
    if op.name == "util.assume.int":
        return _key(op.operands[OpResult(value).result_number])
    if op.name == "arith.constant":
        return _literal(op.attributes["value"], value)
    if op.name in _CONVERSIONS:
        return _key(op.operands[0])
    return (op.name, *map(_key, op.operands))


def _key_in_function(value: Value, constants: list[Key]) -> Key:
    """Return the key of a size in a dispatched function.

    Args:
        value: The size.
        constants: The keys of the push constants of a dispatch.

    Returns:
        The key; None where the size is no push constant and no literal.
    """
    op = _owner(value)
    if op is None:
        return None
    if op.name == "util.assume.int":
        return _key_in_function(op.operands[OpResult(value).result_number], constants)
    if op.name == "hal.interface.constant.load":
        return constants[IntegerAttr(op.attributes["ordinal"]).value]
    if op.name == "arith.constant":
        return _literal(op.attributes["value"], None)
    if op.name in _CONVERSIONS:
        return _key_in_function(op.operands[0], constants)
    return None


def _literal(attribute: Attribute, otherwise: Key) -> Key:
    return ("literal", attribute.value) if isinstance(attribute, IntegerAttr) else otherwise


def _owner(value: Value) -> Any:
    """Return the operation that defines a value; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, Block) else owner.operation
