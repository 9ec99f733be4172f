"""Copies of storage that is written in place while something else uses it.

IREE (3.13) inserts a copy for each operand that is written in place, and removes those that it
believes useless (`iree-stream-elide-async-copies`). It removes too many, and afterwards reorders a
read past the write (`iree-stream-schedule-concurrency`): an earlier value changes, two equal
constants share one buffer, an argument of the caller or the value of another global is overwritten.

So every copy that is needed is made here, as an operation that IREE does not remove, by one rule:
**an operation writes to storage that nothing else uses**. An operand may be written in place if

- it has no other use, and is computed in the block that writes it,
- its storage is fresh: allocated by the operation that computes it, or what such storage becomes
  by writes in place, changes of type, and steps of a loop that owns it from its first value on,
- or it is the value of a global that this function loads once, and stores back.

All else is copied before the write. What a mutable global is set to is fresh and belongs to
nobody else, and so is what a program returns of a global, a constant or an argument: results
belong to the caller.
"""

from __future__ import annotations

from collections.abc import Iterator

from iree.compiler.ir import (
    ArrayAttr,
    BlockArgument,
    DenseI32ArrayAttr,
    FlatSymbolRefAttr,
    IndexType,
    InsertionPoint,
    IntegerAttr,
    Operation,
    OpOperand,
    OpResult,
    StringAttr,
    Value,
    WalkOrder,
    WalkResult,
)

from ..emission import create, index
from ..linalg import operations_in

_ALLOCATES = frozenset(
    ["stream.tensor.dispatch", "stream.async.dispatch", "stream.tensor.empty",
     "stream.async.alloca"]
)  # fmt: skip
"""Operations whose results, where they are not tied to an operand, are storage of their own."""

_SPLATS = frozenset(["stream.tensor.splat", "stream.async.splat"])
"""Operations that allocate as well; two that are equal become one."""

_ALIASES = frozenset(
    ["stream.async.cast", "stream.async.clone", "stream.async.transfer", "stream.tensor.clone",
     "stream.timepoint.await", "stream.timepoint.barrier"]
)  # fmt: skip
"""Operations whose results may have the storage of their operands, in order."""

_SLICES = frozenset(["stream.tensor.slice", "stream.async.slice"])
"""Operations whose result may be a part of their operand's storage."""

_WRITES_FIRST_OPERAND = frozenset(
    f"stream.{level}.{name}"
    for level in ("tensor", "async")
    for name in ("copy", "fill", "store", "update")
)

_HOLDS_NOTHING = frozenset(
    ["stream.tensor.dispatch", "stream.async.dispatch", "stream.tensor.load",
     "stream.tensor.trace", "stream.resource.size", *_WRITES_FIRST_OPERAND]
)  # fmt: skip
"""Operations that only read an operand that they do not write."""

_COPIES = ("stream.tensor.export", "util.global.store")
"""Operations that get a copy of what belongs to a global."""

_CONSTANTS = frozenset(["stream.tensor.constant", "stream.async.constant"])


def copy_shared_storage(module_op: Operation) -> None:
    """Copy what is written in place, held by a global or returned, where it has other uses.

    Args:
        module_op: A module after the conversion to `stream.tensor` operations; changed in place.
    """
    for barrier in operations_in(module_op, "util.optimization_barrier"):
        if all(map(_is_resource, barrier.operands)):  # of tensors: it has served its purpose
            for result, operand in zip(barrier.results, barrier.operands, strict=True):
                result.replace_all_uses_with(operand)
            barrier.erase()
    _Copies(module_op).insert()


class _Copies:
    """Inserts copies into one module, in the order of the program."""

    def __init__(self, module_op: Operation) -> None:
        self._module_op = module_op
        self._owned: set[tuple[Operation, int]] = set()
        self._zeros: dict[Operation, Value] = {}

    def insert(self) -> None:
        operations: list[Operation] = []

        def visit(op: Operation) -> WalkResult:
            if op.name in ("stream.executable", "flow.executable", "hal.executable"):
                return WalkResult.SKIP
            operations.append(op)
            return WalkResult.ADVANCE

        self._module_op.walk(visit, WalkOrder.PRE_ORDER)
        mutable = {
            StringAttr(op.attributes["sym_name"]).value
            for op in operations
            if op.name == "util.global" and "is_mutable" in op.attributes
        }
        for op in operations:
            for result in op.results:
                place = _written_operand(result)
                if place is not None:
                    self._own(op, place)
        for op in operations:
            if op.name == "util.global.store" and _is_resource(op.operands[0]):
                if _global(op) in mutable and not self._may_be_stored(op):
                    self._copy(op, 0)
            elif op.name == "stream.tensor.export" and _belongs_to_program(op.operands[0]):
                self._copy(op, 0)

    def _own(self, op: Operation, place: int) -> None:
        """Give an operand storage that nothing else uses."""
        key = (op, place)
        if key in self._owned:  # of a loop, which is being looked at
            return
        self._owned.add(key)
        value = op.operands[place]
        if not (_is_used_once(value, op) and self._is_fresh(value)):
            self._copy(op, place)

    def _is_fresh(self, value: Value) -> bool:
        """Tell whether the storage of a value is fresh, and reached only by the value.

        What a loop or branch gives is made so by copies, and a splat is kept from becoming one
        with its equals.
        """
        incoming = _incoming(value)
        if incoming:
            for op, place in incoming:
                self._own(op, place)
            return True
        if not isinstance(value, OpResult):
            return False
        op = value.owner.operation
        if op.name in _SPLATS:
            _make_unique(op)
            return True
        if op.name in _ALLOCATES or _written_operand(value) is not None:
            return True
        if op.name == "util.global.load":
            return _is_stored_back(op)
        if op.name in _ALIASES:
            source = _aliased(value)
            return _is_used_once(source, op) and self._is_fresh(source)
        return False

    def _may_be_stored(self, store: Operation) -> bool:
        """Tell whether a global may have the storage of its new value."""
        root = _root(store.operands[0])
        others = [holder for holder in _holders(root) if holder != store]
        if isinstance(root, OpResult) and root.owner.operation.name == "util.global.load":
            # Other globals and the caller get copies of it.
            back = _global(root.owner.operation) == _global(store)
            return back and all(holder.name in _COPIES for holder in others)
        return not others and self._is_fresh(root)

    def _copy(self, op: Operation, place: int) -> None:
        """Replace an operand by a copy, in storage that is allocated for it.

        A copy of known length to all of the storage would become a `stream.async.clone`, which is
        elided.
        """
        value = op.operands[place]
        affinity = {"affinity": op.attributes["affinity"]} if "affinity" in op.attributes else {}
        with InsertionPoint(op), op.location:
            size, start = _size(value, op, place), index(0)
            length = create("arith.addi", size.type, [size, self._hidden_zero(op)])
            storage = create("stream.async.alloca", value.type, [size], affinity)
            operands = [storage, size, start, length, value, size, start, length, length]
            op.operands[place] = create("stream.async.copy", value.type, operands, affinity)

    def _hidden_zero(self, op: Operation) -> Value:
        """Return a zero that IREE does not know; one for each function, where it begins."""
        function = _function(op)
        if function not in self._zeros:
            with InsertionPoint.at_block_begin(function.regions[0].blocks[0]), op.location:
                zero = index(0)
                self._zeros[function] = create("util.optimization_barrier", zero.type, [zero])
        return self._zeros[function]


def _function(op: Operation) -> Operation:
    """Return the function or initializer that an operation is in."""
    while op.name not in ("util.func", "util.initializer"):
        assert op.parent is not None, op.name
        op = op.parent
    return op


def _is_resource(value: Value) -> bool:
    return str(value.type).startswith("!stream.resource")


def _global(op: Operation) -> str:
    return str(FlatSymbolRefAttr(op.attributes["global"]).value)


def _segments(op: Operation) -> list[int]:
    return list(DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))


def _written_operand(value: Value) -> int | None:
    """Return which operand an operation writes in place to make a result; None: none."""
    if not isinstance(value, OpResult) or not _is_resource(value):
        return None
    op = value.owner.operation
    if op.name in _WRITES_FIRST_OPERAND:
        return 0
    if not op.name.endswith((".dispatch", ".call")) or "tied_operands" not in op.attributes:
        return None
    tied = IntegerAttr(ArrayAttr(op.attributes["tied_operands"])[value.result_number]).value
    return None if tied < 0 else _segments(op)[0] + tied


def _is_used_once(value: Value, user: Operation) -> bool:
    """Tell whether a value has one use, in the block that computes it."""
    block = value.owner if isinstance(value, BlockArgument) else value.owner.operation.block
    return len(list(value.uses)) == 1 and block == user.block


def _aliased(value: OpResult) -> Value:
    """Return the operand whose storage the result of an alias may have."""
    op = value.owner.operation
    resources = [result for result in op.results if _is_resource(result)]
    sources = [operand for operand in op.operands if _is_resource(operand)]
    return sources[resources.index(value)]


def _incoming(value: Value) -> list[tuple[Operation, int]]:
    """Return the operands that become an argument or a result of a loop or a branch.

    Empty for all other values.
    """
    if isinstance(value, BlockArgument):
        op, number = value.owner.owner.operation, value.arg_number
        if op.name == "scf.for" and number > 0:
            return [(op, 2 + number), (_end(op, 0), number - 1)]
        if op.name == "scf.while":
            if value.owner == op.regions[0].blocks[0]:
                return [(op, number), (_end(op, 1), number)]
            return [(_end(op, 0), 1 + number)]
        return []
    op, number = value.owner.operation, value.result_number
    if op.name == "scf.for":
        return [(op, 3 + number), (_end(op, 0), number)]
    if op.name == "scf.while":
        return [(_end(op, 0), 1 + number)]
    if op.name in ("scf.if", "scf.index_switch"):
        return [(_end(op, place), number) for place in range(len(op.regions))]
    return []


def _end(op: Operation, region: int) -> Operation:
    (block,) = op.regions[region].blocks
    (*_, end) = block.operations
    return end.operation


def _make_unique(splat: Operation) -> None:
    """Hide the element of a splat, so that the splat is not taken for one that is equal to it."""
    element = splat.operands[0]
    if (
        isinstance(element, OpResult)
        and element.owner.operation.name == "util.optimization_barrier"
    ):
        return
    with InsertionPoint(splat), splat.location:
        splat.operands[0] = create("util.optimization_barrier", element.type, [element])


def _root(value: Value) -> Value:
    """Return the value whose storage a value has by aliases and writes in place."""
    while isinstance(value, OpResult):
        place = _written_operand(value)
        if place is not None:
            value = value.owner.operation.operands[place]
        elif value.owner.operation.name in _ALIASES:
            value = _aliased(value)
        elif value.owner.operation.name in _SLICES:
            value = value.owner.operation.operands[0]
        else:
            break
    return value


def _holders(root: Value) -> Iterator[Operation]:
    """Yield the operations by which the storage of a value goes on to live elsewhere."""
    use: OpOperand
    for use in root.uses:
        op, place = use.owner.operation, use.operand_number
        if op.name in _ALIASES or op.name in _SLICES:
            for result in op.results:
                if _is_resource(result):
                    yield from _holders(result)
            continue
        written = [result for result in op.results if _written_operand(result) == place]
        for result in written:
            yield from _holders(result)
        if not written and op.name not in _HOLDS_NOTHING:
            yield op


def _is_stored_back(load: Operation) -> bool:
    """Tell whether a function loads a global once, and then sets it to what becomes of the value.

    Between the two, nothing may read the global: calls and other accesses of it are looked for.
    """
    stores = []
    for op in load.block.operations:
        operation = op.operation
        if operation.name == "util.global.store" and _global(operation) == _global(load):
            stores.append(operation)
    if len(stores) != 1 or _root(stores[0].operands[0]) != load.results[0]:
        return False
    accesses: list[Operation] = []

    def visit(op: Operation) -> WalkResult:
        if op.name == "util.call" or (
            op.name in ("util.global.load", "util.global.store") and _global(op) == _global(load)
        ):
            accesses.append(op)
        return WalkResult.ADVANCE

    _function(load).walk(visit)
    return accesses == [load, stores[0]]


def _belongs_to_program(value: Value) -> bool:
    """Tell whether a value has the storage of a global, a constant or an argument."""
    root = _root(value)
    return isinstance(root, OpResult) and (
        root.owner.operation.name in _CONSTANTS
        or root.owner.operation.name in ("util.global.load", "stream.tensor.import")
    )


def _size(value: Value, op: Operation, place: int) -> Value:
    """Return the size in bytes of an operand of an operation."""
    if op.name in _WRITES_FIRST_OPERAND and op.name.startswith("stream.tensor."):
        first, dims, *_ = _segments(op)
        return op.operands[first + dims]
    if op.name == "stream.tensor.dispatch":
        workload, arguments, *_ = _segments(op)
        resources = [each for each in list(op.operands)[workload:place] if _is_resource(each)]
        return op.operands[workload + arguments + len(resources)]
    if isinstance(value, OpResult) and value.owner.operation.name in _ALIASES:
        (*_, size) = value.owner.operation.operands
        if str(size.type) == "index":
            return size
    return create("stream.resource.size", IndexType.get(), [value])
