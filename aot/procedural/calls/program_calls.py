"""Calls of captured programs: conversion of operands, checks of sizes, and results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from iree.compiler.ir import FlatSymbolRefAttr, Operation, RankedTensorType, Type, Value
from torch.export.graph_signature import ConstantArgument

from pelton.runtime.call import pytrees
from pelton.runtime.call import sizes as size_trees

from ...capture.arguments import Arguments, InputLeaf, TracedInput
from ...capture.dynamic_shapes import UNKNOWN, size_of
from ...ir.elements import dtype_row
from ...ir.torch_types import TensorType
from ...spec.sizes import is_static
from ..values import arithmetic, tensor_ops
from ..values.scalars import IrImmediateScalar, Size
from ..values.services import TraceServices
from ..values.sizes import DYNAMIC
from ..values.tensors import MAY_ALIAS_ANY, NO_ALIAS, IrImmediateTensor, IrTensor
from .captured import CapturedProgram
from .sources import aliased_inputs


def emit_program_call(trace: TraceServices, callee: CapturedProgram, arguments: Arguments) -> Any:
    """Emit a call of a captured program; return its result with traced values in it.

    The program's guards (equal sizes, ranges) are checked when the call runs, or now where the
    sizes are static.

    Args:
        trace: The procedure that calls.
        callee: The program.
        arguments: Arguments of the types for which it was captured.

    Raises:
        ProcedureTraceError: A static size violates a guard.
    """
    return _Call(trace, callee, arguments).emit()


class _Call:
    def __init__(self, trace: TraceServices, callee: CapturedProgram, arguments: Arguments) -> None:
        self.trace = trace
        self.callee = callee
        self.arguments = arguments
        self.sizes: dict[str, Size] = {}

    def emit(self) -> Any:
        program = self.callee.program
        inputs = list(zip(self.arguments.inputs, program.inputs, strict=True))
        for leaf, node in inputs:
            self._bind(leaf, node.meta["val"])
        for leaf, node in inputs:
            self._check_derived(leaf, node.meta["val"])
        self._check_ranges()
        with self.trace.emitting():
            operands = [self._operand(leaf, node.meta["val"]) for leaf, node in inputs]
            nodes = [out for out in program.outputs if isinstance(out, torch.fx.Node)]
            call = Operation.create(
                "func.call",
                results=[_torch_type(node.meta["val"]) for node in nodes],
                operands=operands,
                attributes={"callee": FlatSymbolRefAttr.get(self.callee.symbol)},
            )
            values = iter(call.results)
            outputs = [
                out.value if isinstance(out, ConstantArgument) else self._result(next(values), out)
                for out in program.outputs
            ]
        self.trace.called(self.callee)
        return self._finish(outputs, inputs)

    def _finish(self, outputs: list[Any], inputs: list[tuple[InputLeaf, torch.fx.Node]]) -> Any:
        """Assign mutated arguments their new values; return the result in its structure."""
        by_node = {node: self._value(leaf) for leaf, node in inputs}
        changed = self.callee.program.changed_inputs
        for node, value in zip(changed, outputs, strict=False):
            by_node[node].assign(value)
        own = iter(outputs[len(changed) :])
        capture = self.callee.capture
        leaves = [
            constant.value if constant is not None else next(own) for constant in capture.results
        ]
        return pytrees.unflatten(capture.result_tree, leaves)

    def _value(self, leaf: InputLeaf) -> Any:
        given = self.arguments.leaves[leaf.index]
        assert isinstance(given, TracedInput)
        return given.value

    def _sizes_of(self, leaf: InputLeaf, val: Any) -> Iterator[tuple[str, Any, Size]]:
        """Yield the name, the program's expression and the value of each size of an argument."""
        value = self._value(leaf)
        self._check_kind(leaf, value, val)
        if isinstance(value, IrTensor):
            for axis, expression in enumerate(val.shape):
                yield f"dimension {axis} of argument {leaf.path}", expression, value.size(axis)
        else:
            yield f"argument {leaf.path}", val, value

    def _check_kind(self, leaf: InputLeaf, value: Any, val: Any) -> None:
        """Refuse an argument whose element type or rank differs from the program's input."""
        if isinstance(val, torch.Tensor):
            fits = isinstance(value, IrTensor)
            fits = fits and value.dtype == val.dtype and value.rank == val.dim()
        else:
            fits = not isinstance(value, IrTensor)
        if not fits:
            is_tensor = isinstance(val, torch.Tensor)
            takes = _describe(val) if is_tensor else _NUMBERS[_number_kind(val)]
            self.trace.fail(
                f"calling {self.callee.symbol}: argument {leaf.path} expects {takes}, got {value!r}"
            )

    def _bind(self, leaf: InputLeaf, val: Any) -> None:
        """Bind the symbols of the program to sizes; sizes of one symbol must be equal."""
        for what, expression, size in self._sizes_of(leaf, val):
            symbol = size_of(expression, _Names())
            if isinstance(symbol, str) and symbol != UNKNOWN:
                first = self.sizes.setdefault(symbol, size)
                if first is not size:
                    self._equal(size, first, what)

    def _check_derived(self, leaf: InputLeaf, val: Any) -> None:
        """Check the sizes that are constants or expressions of symbols in the program."""
        for what, expression, size in self._sizes_of(leaf, val):
            derived = size_of(expression, _Names())
            if is_static(derived) and leaf.axes and not is_static(size):
                self.trace.fail(
                    f"calling {self.callee.symbol}: the function fixes {what} to {derived}, the "
                    "example size that it was traced with; it cannot be dynamic there"
                )
            if is_static(derived):
                self._equal(size, derived, what)
            elif isinstance(derived, list):
                self._equal(size, self._evaluate(derived), what)

    def _equal(self, left: Size, right: Size, what: str) -> None:
        tensor_ops.require_equal(self.trace, left, right, f"calling {self.callee.symbol}: {what}")

    def _check_ranges(self) -> None:
        for symbol, bounds in self.callee.program.range_constraints.items():
            size = self.sizes.get(str(symbol))
            if size is None:
                continue
            what = f"calling {self.callee.symbol}: a size or integer must be at"
            is_size = is_static(size) or size.kind == "index"
            if bounds.lower.is_finite and (bounds.lower > 0 or not is_size):
                self.trace.require(size >= int(bounds.lower), f"{what} least {bounds.lower}")
            if getattr(bounds.upper, "is_Integer", False) and bounds.upper < 2**62:
                self.trace.require(size <= int(bounds.upper), f"{what} most {bounds.upper}")

    def _evaluate(self, tree: Any) -> Any:
        if is_static(tree):
            return tree
        if isinstance(tree, str):
            return self.sizes[tree]
        name, left, right = tree[0], self._evaluate(tree[1]), self._evaluate(tree[2])
        if name == "max":
            return left.clamp(right) if not is_static(left) else right.clamp(left)
        if name == "min":
            return left.clamp(max=right) if not is_static(left) else right.clamp(max=left)
        return size_trees.OPERATORS[name](left, right)

    def _operand(self, leaf: InputLeaf, val: Any) -> Value:
        value = self._value(leaf)
        if isinstance(value, IrTensor):
            shape = [
                size if is_static(size) else DYNAMIC
                for size in (size_of(expression, _Names()) for expression in val.shape)
            ]
            return _cast("from_builtin_tensor", tensor_ops.emit_cast(self.trace, value, shape), val)
        return _cast("from_i64", arithmetic.convert(value.ir_value, "i64"), val)

    def _may_alias(self, node: torch.fx.Node) -> frozenset[str]:
        """Return the globals whose memory a result may share: those of the inputs it may alias."""
        by_node = dict(zip(self.callee.program.inputs, self.arguments.inputs, strict=True))
        may_alias = NO_ALIAS
        for source in aliased_inputs(node):
            leaf = by_node.get(source)
            may_alias |= MAY_ALIAS_ANY if leaf is None else self._value(leaf).may_alias
        return may_alias

    def _result(self, value: Value, node: torch.fx.Node) -> Any:
        val = node.meta["val"]
        if isinstance(val, torch.Tensor):
            shape = [size_of(expression, _Names()) for expression in val.shape]
            element = self.trace.module_builder.torch_dtype_to_iree_type(val.dtype)
            extents = [size if is_static(size) else DYNAMIC for size in shape]
            type_ = RankedTensorType.get(extents, element)
            tensor = IrImmediateTensor(_convert("to_builtin_tensor", value, type_), val.dtype)
            tensor.may_alias = self._may_alias(node)
            for axis, size in enumerate(shape):
                known = self.sizes.get(size) if isinstance(size, str) else None
                if known is not None:
                    (index,) = tensor_ops.index_values(self.trace, [known])
                    tensor.set_dim_value(axis, index)
            return tensor
        kind = _number_kind(val)
        return IrImmediateScalar(_convert(f"to_{kind}", value, Type.parse(kind)))


def _describe(val: torch.Tensor) -> str:
    sizes = ", ".join(str(size) if is_static(size) else "?" for size in val.shape)
    return f"{dtype_row(val.dtype, 'a tensor')}[{sizes}]"


class _Names(dict[str, str]):
    """Every symbol by its own name."""

    def get(self, key: str, default: Any = None) -> str:
        return key


def _number_kind(val: Any) -> str:
    if isinstance(val, (bool, torch.SymBool)):
        return "i1"
    return "f64" if isinstance(val, (float, torch.SymFloat)) else "i64"


_NUMBERS = {"i1": "bool", "f64": "float", "i64": "int"}
"""The name of the numbers of a kind, in Python and in the torch dialect."""


def _torch_type(val: Any) -> Type:
    """Return the type of a traced value in the torch dialect."""
    if isinstance(val, torch.Tensor):
        element = dtype_row(val.dtype, "a result").torch_mlir
        return Type.parse(TensorType.of(val.shape, element).torch())
    return Type.parse(f"!torch.{_NUMBERS[_number_kind(val)]}")


def _cast(conversion: str, value: Value, val: Any) -> Value:
    return _convert(conversion, value, _torch_type(val))


def _convert(conversion: str, value: Value, type_: Type) -> Value:
    return Operation.create(f"torch_c.{conversion}", results=[type_], operands=[value]).result
