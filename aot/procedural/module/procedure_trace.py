"""Traces of procedures: Python functions run once on traced values as arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from iree.compiler.dialects import func as func_dialect
from iree.compiler.ir import DictAttr, Location, RankedTensorType, Value

from pelton.runtime.call import pytrees
from pelton.runtime.call.dtypes import BY_TORCH_MLIR

from ...ir.affinity import attributes_from_argument_device_affinities
from ...ir.builder import ModuleBuilder
from ..globals.live_globals import plain_tree
from ..globals.types import AbstractIntrinsic, AbstractTensor
from ..values.arithmetic import is_number
from ..values.conversions import constant_of
from ..values.current import new_ir_trace_scope
from ..values.intrinsics import Intrinsic
from ..values.scalars import IrImmediateScalar, IrScalar, scalar_of
from ..values.tensors import MAY_ALIAS_ANY, IrImmediateTensor, IrTensor
from .trace import IrTrace


def convert_py_value_to_ir(proc_trace: ProcedureTrace, py_value: Any) -> Sequence[Value]:
    """Return the values of a traced value, a number, or a torch tensor.

    Raises:
        ProcedureTraceError: `py_value` cannot be a value of the compiled program.
    """
    if isinstance(py_value, Value):
        return [py_value]
    if isinstance(py_value, Intrinsic):
        return py_value.resolve_ir_values(py_value.trace)
    if isinstance(py_value, torch.Tensor):
        return [constant_of(proc_trace, py_value).ir_value]
    if is_number(py_value):
        return [scalar_of(proc_trace, py_value).ir_value]
    proc_trace.fail(
        f"a {type(py_value).__name__} ({py_value!r:.80}) cannot become a value of the compiled "
        "program; use tensors, numbers, and containers of them"
    )


class ProcedureTrace(IrTrace):
    """A procedure: a Python function run once, on traced values as arguments.

    Args:
        module_builder: The module that it belongs to.
        func_op: Its operation, with an entry block.
        proxy_posargs: The traced positional arguments.
        proxy_kwargs: The traced keyword arguments.

    Attributes:
        result_tree: The structure of the result, once traced.
        results: Its leaves: traced values and constants.
    """

    def __init__(
        self,
        *,
        module_builder: ModuleBuilder,
        func_op: func_dialect.FuncOp,
        proxy_posargs: Sequence[Any] = (),
        proxy_kwargs: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(module_builder=module_builder, func_op=func_op)
        self.proxy_posargs = list(proxy_posargs)
        self.proxy_kwargs = dict(proxy_kwargs or {})
        self.result_tree: pytrees.Tree = None
        self.results: list[Any] = []

    @staticmethod
    def define_func(
        module_builder: ModuleBuilder,
        *,
        symbol_name: str,
        posargs: Sequence[Any],
        kwargs: Mapping[str, Any],
        loc: Location,
        arg_device: Mapping[int, Any] | None = None,
        public: bool = True,
    ) -> ProcedureTrace:
        """Add a function to a module and return its trace.

        Args:
            module_builder: The module.
            symbol_name: The function's name; a taken one gets a suffix.
            posargs: Positional arguments: trees of abstract types; other leaves are constants.
            kwargs: Keyword arguments of the same kinds.
            loc: Its location in the user's source.
            arg_device: The device of each flat argument, by its position.
            public: Whether it is an entry point.
        """
        tree, leaves = pytrees.describe([list(posargs), dict(kwargs)], _is_abstract)
        abstract = [leaf for leaf in leaves if _is_abstract(leaf)]
        types = [leaf.get_ir_type(module_builder) for leaf in abstract]
        context = module_builder.context
        attributes = [
            DictAttr.get(entries, context)
            for entries in attributes_from_argument_device_affinities(
                arg_device, len(types), context
            )
        ]
        _, func_op = module_builder.create_func_op(
            symbol_name, types, public, argument_attributes=attributes or None
        )
        func_op.operation.location = loc
        trace = ProcedureTrace(module_builder=module_builder, func_op=func_op)
        trace.loc = loc
        with new_ir_trace_scope(trace):
            values = iter(func_op.arguments)
            proxies = [
                leaf.create_intrinsic(next(values)) if _is_abstract(leaf) else leaf
                for leaf in leaves
            ]
            _share_named_sizes(leaves, proxies)
        for proxy in proxies:
            if isinstance(proxy, IrTensor):
                proxy.may_alias = MAY_ALIAS_ANY
        trace.proxy_posargs, trace.proxy_kwargs = pytrees.unflatten(tree, proxies)
        return trace

    def trace_py_func(self, py_f: Callable[..., Any]) -> None:
        """Run a Python function on the traced arguments, and emit the return of its result.

        Raises:
            ProcedureTraceError: The function cannot be compiled.
        """
        with new_ir_trace_scope(self):
            result = plain_tree(py_f(*self.proxy_posargs, **self.proxy_kwargs))
            self.result_tree, leaves = pytrees.describe(result, _is_result)
            self.results = [self._result(leaf) for leaf in leaves]
            values = [leaf.ir_value for leaf in self.results if isinstance(leaf, Intrinsic)]
            self.emit_return(*values)
            self.finalize()

    def _result(self, leaf: Any) -> Any:
        if isinstance(leaf, Value):
            return _intrinsic_of(leaf)
        if isinstance(leaf, IrTensor):
            result = IrImmediateTensor(leaf.ir_value, leaf.dtype)
            for axis, size in leaf.known_dim_values().items():
                result.set_dim_value(axis, size)
            return result
        if isinstance(leaf, IrScalar):
            return IrImmediateScalar(leaf.ir_value)
        if isinstance(leaf, torch.Tensor):
            return constant_of(self, leaf)
        if leaf is None or isinstance(leaf, (bool, int, float, str)):
            return leaf
        self.fail(
            f"a result is a {type(leaf).__name__} ({leaf!r:.80}), which cannot be returned; return "
            "tensors, numbers, text, None, or lists, tuples, dicts and dataclasses of them"
        )


def _is_abstract(value: Any) -> bool:
    return isinstance(value, AbstractIntrinsic)


def _is_result(value: Any) -> bool:
    return isinstance(value, (Intrinsic, Value, torch.Tensor))


def _intrinsic_of(value: Value) -> Intrinsic:
    """Return a traced value for a bare value of the module."""
    if not isinstance(value.type, RankedTensorType):
        return IrImmediateScalar(value)
    element = str(value.type.element_type)
    row = BY_TORCH_MLIR.get(f"s{element}") or BY_TORCH_MLIR[element]
    return IrImmediateTensor(value, getattr(torch, row.name))


def _share_named_sizes(leaves: Sequence[Any], proxies: Sequence[Any]) -> None:
    """Give the sizes of one name one value; the caller checks that they are equal."""
    first: dict[str, tuple[IrTensor, int]] = {}
    for leaf, proxy in zip(leaves, proxies, strict=True):
        if not isinstance(leaf, AbstractTensor):
            continue
        for axis, name in leaf.size_names().items():
            owner, at = first.setdefault(name, (proxy, axis))
            if owner is not proxy or at != axis:
                proxy.set_dim_value(axis, owner.get_dim_value(at))
