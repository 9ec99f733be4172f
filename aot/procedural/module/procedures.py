"""Procedures of a module: declared first, traced at their first call, callable by each other."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from iree.compiler.ir import FlatSymbolRefAttr, Location, Operation, StringAttr, Value

from pelton.runtime.call import pytrees
from pelton.runtime.call.signature import Parameter
from pelton.runtime.errors import SignatureError

from ...capture.arguments import shift
from ...compat.pytrees import tree_structure, treespec_dumps
from ...spec.inputs import NamedDimension
from ..calls.captured import constant_key
from ..globals.live_globals import plain_tree
from ..globals.types import AbstractIntrinsic, AbstractSize, AbstractTensor
from ..values import tensor_ops
from ..values.conversions import tensor_of, tensor_of_type
from ..values.intrinsics import Intrinsic
from ..values.scalars import IrImmediateScalar, IrScalar, Size, scalar_of_type
from ..values.services import TraceServices
from ..values.tensors import MAY_ALIAS_ANY, IrImmediateTensor, IrTensor
from .module_decl import ProcedureDecl
from .module_state import ModuleState
from .procedure_trace import ProcedureTrace
from .view import ProcedureSelf


class Procedure:
    """A function of the module: a method traced for its abstract arguments and constants.

    Args:
        module: The module that it belongs to.
        decl: The method.
        symbol: The function's name; a taken one gets a suffix.
        constants: Values of constant leaves other than the defaults, by position.
        public: Whether it is an entry point.

    Attributes:
        decl: The method.
        parameters: The parameters with the structure of their arguments.
        leaves: The leaves of all arguments: abstract types and constants.
        trace: The function.
    """

    def __init__(
        self,
        module: ModuleState,
        decl: ProcedureDecl,
        symbol: str,
        constants: Mapping[int, Any] | None = None,
        public: bool = True,
    ) -> None:
        self.decl = decl
        self._module = module
        self.parameters, self.leaves = _flatten_parameters(decl)
        for index, value in (constants or {}).items():
            self.leaves[index] = value
        self.trace = self._define(symbol, public)
        self._phase = "declared"
        self._specialised: dict[Any, Procedure] = {}

    def _define(self, symbol: str, public: bool) -> ProcedureTrace:
        kinds = {p.name: p.kind for p in self.decl.signature.parameters.values()}
        values = {p.name: pytrees.unflatten(p.tree, self.leaves) for p in self.parameters}
        keyword_only = {
            name for name, kind in kinds.items() if kind is inspect.Parameter.KEYWORD_ONLY
        }
        builder, place = self._module.builder, self.decl.location
        return ProcedureTrace.define_func(
            builder,
            symbol_name=symbol,
            posargs=[value for name, value in values.items() if name not in keyword_only],
            kwargs={name: value for name, value in values.items() if name in keyword_only},
            loc=Location.file(place.file, place.line, 1, builder.context),
            arg_device=self.decl.arg_device,
            public=public,
        )

    @property
    def name(self) -> str:
        """The function's name in the module."""
        return self.trace.name

    def ensure_traced(self, caller: TraceServices | None = None) -> None:
        """Trace the method unless it is traced already.

        Args:
            caller: The procedure that calls it.

        Raises:
            ProcedureTraceError: The method cannot be compiled, or calls itself.
        """
        if self._phase == "tracing":
            assert caller is not None
            caller.fail(
                f"{self.name}() calls itself, directly or through others; a compiled procedure "
                "cannot. Use aot.while_loop"
            )
        if self._phase == "declared":
            self._phase = "tracing"
            view = ProcedureSelf(self._module, self.trace)
            self.trace.trace_py_func(self.decl.function.__get__(view))
            self._phase = "traced"
            self._set_schema_attributes()

    def _set_schema_attributes(self) -> None:
        """Set the schemas of arguments and result as attributes, where torch can serialize them."""
        attributes = self.trace.func_op.operation.attributes
        context = self._module.builder.context
        result = pytrees.unflatten(self.trace.result_tree, range(len(self.trace.results)))
        arguments = (tuple(self.trace.proxy_posargs), self.trace.proxy_kwargs)
        for key, value in (("torch.args_schema", arguments), ("torch.return_schema", result)):
            if value is None or (not self.leaves and key == "torch.args_schema"):
                continue
            try:
                text = treespec_dumps(tree_structure(value))
            except (NotImplementedError, TypeError):
                continue  # a class that torch does not serialize
            attributes[key] = StringAttr.get(text, context)

    def call(self, trace: TraceServices, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Emit a call from another procedure; return its result with traced values in it.

        Args:
            trace: The procedure that calls.
            args: Positional arguments.
            kwargs: Keyword arguments.

        Raises:
            ProcedureTraceError: The arguments do not fit the method's parameters.
        """
        given = self._bind(trace, args, kwargs)
        constants = {
            index: value
            for index, value in enumerate(given)
            if not isinstance(self.leaves[index], AbstractIntrinsic)
            and constant_key(value) != constant_key(self.leaves[index])
        }
        target = self._specialise(constants) if constants else self
        operands = target._operands(trace, given)
        target.ensure_traced(trace)
        with trace.emitting():
            call = Operation.create(
                "func.call",
                results=list(target.trace.return_types or ()),
                operands=operands,
                attributes={"callee": FlatSymbolRefAttr.get(target.name)},
            )
        trace.called(target)
        values = iter(call.results)
        leaves = [
            _received(leaf, next(values)) if isinstance(leaf, Intrinsic) else leaf
            for leaf in target.trace.results
        ]
        return pytrees.unflatten(target.trace.result_tree, leaves)

    def _bind(
        self, trace: TraceServices, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> list[Any]:
        """Return the leaves of the arguments of a call, in the order of the declared ones."""
        name = self.decl.name
        try:
            bound = self.decl.signature.bind_partial(*args, **kwargs)
        except TypeError as error:
            trace.fail(f"calling {name}(): {error}; it takes {self.decl.signature}")
        leaves: list[Any] = list(self.leaves)
        for parameter in self.parameters:
            if parameter.name not in bound.arguments:
                if any(isinstance(leaf, AbstractIntrinsic) for leaf in self._leaves_of(parameter)):
                    trace.fail(f"calling {name}(): argument {parameter.name} is missing")
                continue
            value = plain_tree(bound.arguments[parameter.name])
            try:
                pytrees.flatten(parameter.tree, value, leaves, parameter.name)
            except SignatureError as error:
                trace.fail(f"calling {name}(): {error}")
        return leaves

    def _leaves_of(self, parameter: Parameter) -> list[Any]:
        return [self.leaves[index] for index in pytrees.leaf_paths(parameter.tree, "")]

    def _operands(self, trace: TraceServices, given: Sequence[Any]) -> list[Value]:
        operands: list[Value] = []
        named: dict[str, Size] = {}
        for index, path in self.paths().items():
            leaf = self.leaves[index]
            where = f"argument {path} of {self.decl.name}()"
            if isinstance(leaf, AbstractTensor):
                tensor = tensor_of(trace, given[index], where)
                operands.append(tensor_of_type(trace, tensor, leaf, where))
                _check_sizes(trace, leaf, tensor, where, named)
            elif isinstance(leaf, AbstractIntrinsic):
                kind = str(leaf.get_ir_type(self._module.builder))
                operands.append(scalar_of_type(trace, given[index], kind, where))
                if isinstance(leaf, AbstractSize):
                    _check_size(trace, leaf, IrImmediateScalar(operands[-1]), where)
        return operands

    def paths(self) -> dict[int, str]:
        """Return the path of each leaf of the arguments, in order."""
        paths: dict[int, str] = {}
        for parameter in self.parameters:
            paths.update(pytrees.leaf_paths(parameter.tree, parameter.name))
        return dict(sorted(paths.items()))

    def proxies(self) -> dict[int, Any]:
        """Return the traced value or constant of each leaf of the arguments, by position."""
        given = [*self.trace.proxy_posargs, *self.trace.proxy_kwargs.values()]
        leaves: list[Any] = list(self.leaves)
        for parameter, value in zip(self.parameters, given, strict=True):
            pytrees.flatten(parameter.tree, value, leaves, parameter.name)
        return dict(enumerate(leaves))

    def _specialise(self, constants: Mapping[int, Any]) -> Procedure:
        key = tuple((index, constant_key(value)) for index, value in sorted(constants.items()))
        found = self._specialised.get(key)
        if found is None:
            found = Procedure(self._module, self.decl, self.decl.name, constants, public=False)
            self._specialised[key] = found
        return found


def _flatten_parameters(decl: ProcedureDecl) -> tuple[list[Parameter], list[Any]]:
    """Return the parameters with their trees, and all leaves: abstract types and constants."""
    leaves: list[Any] = []
    parameters = []
    for parameter in decl.signature.parameters.values():
        default = decl.defaults[parameter.name]
        tree, found = pytrees.describe(default, lambda value: isinstance(value, AbstractIntrinsic))
        parameters.append(Parameter(parameter.name, parameter.kind.name, shift(tree, len(leaves))))
        leaves.extend(found)
    return parameters, leaves


def _received(leaf: Intrinsic, value: Value) -> Intrinsic:
    """Return a value of a call as the traced value of one leaf of the result."""
    if isinstance(leaf, IrTensor):
        tensor = IrImmediateTensor(value, leaf.dtype)
        tensor.may_alias = MAY_ALIAS_ANY
        return tensor
    assert isinstance(leaf, IrScalar)
    return IrImmediateScalar(value)


def _check_size(trace: TraceServices, leaf: AbstractSize, size: IrScalar, where: str) -> None:
    """Emit the checks that a size is within its bounds."""
    low, _, high = leaf.bounds
    trace.require(size >= low, f"{where} must be at least {low}")
    trace.require(size <= high, f"{where} must be at most {high}")


def _check_sizes(
    trace: TraceServices, leaf: AbstractTensor, tensor: IrTensor, where: str, named: dict[str, Size]
) -> None:
    """Emit the checks that sizes of one name are equal and within their bounds."""
    for axis, name in leaf.size_names().items():
        size = tensor.size(axis)
        what = f"dimension {axis} ({name}) of {where}"
        tensor_ops.require_equal(trace, size, named.setdefault(name, size), what)
        bounds = leaf.size[axis]
        if isinstance(bounds, NamedDimension):
            trace.require(size >= bounds.min, f"{what} must be at least {bounds.min}")
            trace.require(size <= bounds.max, f"{what} must be at most {bounds.max}")
