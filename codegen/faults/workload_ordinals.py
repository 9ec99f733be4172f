"""The sizes by which IREE counts how often a piece of code runs, put right.

A dispatch states the sizes that its number of workgroups follows from, its workload, and the code
says of each size that it reads which of them it is: `iree_tensor_ext.dispatch.workload.ordinal`.
Where the same size stands in a workload twice, IREE (`iree-stream-fold-uniform-operands`) drops
the second and renumbers the code, but takes what referred to the second as the *first size of all*
(seen in 3.13). Then too few workgroups may run, and the end of a result is not written: a rotary
embedding of dynamic length is zero from the 65th number of a row on. What each number should be
follows from the dispatch, which passes the size to the code as well.
"""

from __future__ import annotations

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
    WalkOrder,
    WalkResult,
)

from ..errors import CompilerFailed

_ORDINAL = "iree_tensor_ext.dispatch.workload.ordinal"
_CONVERSIONS = frozenset(
    f"arith.{name}"
    for name in ("extsi", "extui", "index_cast", "index_castui", "ori", "shli", "shrui", "trunci")
)
"""How a size is passed: as an integer of 32 bits or in two halves."""

Key = Any
"""What tells sizes apart, a value that can be compared: equal keys are equal sizes."""


@dataclass
class _Executable:
    """A function that is dispatched, and what the dispatches of it say.

    Attributes:
        ordinals: Its operations that tell which size of the workload a value is.
        dispatches: The sizes of the workload and those that are passed, of each dispatch.
    """

    ordinals: list[Operation] = field(default_factory=list)
    dispatches: list[tuple[list[Key], list[Key]]] = field(default_factory=list)


def mend_workloads(module_op: Operation) -> None:
    """Put the numbers of sizes right in all functions that are dispatched.

    Args:
        module_op: A module at the end of the phase `executable-sources`; changed in place.

    Raises:
        CompilerFailed: It cannot be told which size a number stands for.
    """
    for name, function in _executables(module_op).items():
        for ordinal in function.ordinals:
            _mend(name, ordinal, function.dispatches)


def _mend(name: str, ordinal: Operation, dispatches: list[tuple[list[Key], list[Key]]]) -> None:
    stated = IntegerAttr(ordinal.attributes["ordinal"])
    fitting: set[int] | None = None
    for workload, passed in dispatches:
        size = _size(ordinal.operands[0], passed)
        same = {number for number, key in enumerate(workload) if key == size}
        fitting = same if fitting is None else fitting & same
    if fitting is None or stated.value in fitting:
        return
    if fitting:
        ordinal.attributes["ordinal"] = IntegerAttr.get(stated.type, min(fitting))
    elif stated.value == 0:  # the others are right: IREE's fault makes numbers 0
        raise CompilerFailed(
            f"error: IREE numbers the sizes of {name} wrongly, and which of them it means cannot "
            "be told"
        )


def _executables(module_op: Operation) -> dict[str, _Executable]:
    found: dict[str, _Executable] = {}
    path: list[str] = []

    def visit(op: Operation) -> WalkResult:
        if op.name in ("hal.executable", "hal.executable.variant"):
            depth = 0 if op.name == "hal.executable" else 1
            path[depth:] = [StringAttr(op.attributes["sym_name"]).value]
        elif op.name == _ORDINAL:
            found.setdefault(_function_name(path, op), _Executable()).ordinals.append(op)
        elif op.name == "stream.cmd.dispatch":
            for entry in ArrayAttr(op.attributes["entry_points"]):
                name = "::".join(SymbolRefAttr(entry).value)
                found.setdefault(name, _Executable()).dispatches.append(_sizes_of(op))
        return WalkResult.ADVANCE

    module_op.walk(visit, WalkOrder.PRE_ORDER)
    return found


def _function_name(path: list[str], op: Operation) -> str:
    function = op.parent
    while function.name != "func.func":
        function = function.parent
    return "::".join([*path, StringAttr(function.attributes["sym_name"]).value])


def _sizes_of(dispatch: Operation) -> tuple[list[Key], list[Key]]:
    """Return the sizes of a dispatch's workload, and the values that it passes."""
    workload, passed = list(dispatch.attributes["operandSegmentSizes"])[:2]
    keys = [_key(value) for value in list(dispatch.operands)[: workload + passed]]
    return keys[:workload], keys[workload:]


def _key(value: Value) -> Key:
    """Return what a value is computed from, without the conversions between integers.

    What is computed twice the same way is the same.
    """
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


def _size(value: Value, passed: list[Key]) -> Key:
    """Return the key of a size in the code of a function, by what a dispatch passes to it."""
    op = _owner(value)
    if op is None:
        return None
    if op.name == "util.assume.int":
        return _size(op.operands[OpResult(value).result_number], passed)
    if op.name == "hal.interface.constant.load":
        return passed[IntegerAttr(op.attributes["ordinal"]).value]
    if op.name == "arith.constant":
        return _literal(op.attributes["value"], None)
    if op.name in _CONVERSIONS:
        return _size(op.operands[0], passed)
    return None


def _literal(attribute: Attribute, otherwise: Key) -> Key:
    if not isinstance(attribute, IntegerAttr):
        return otherwise
    return ("literal", attribute.value)


def _owner(value: Value) -> Any:
    """Return the operation that gives a value; None for an argument of a block."""
    owner = value.owner
    return None if isinstance(owner, Block) else owner.operation
