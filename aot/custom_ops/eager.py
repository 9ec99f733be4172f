"""Custom operators without an implementation in torch, in eager: compiled when first called."""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from iree.compiler.dialects import func as func_dialect
from iree.compiler.ir import (
    FlatSymbolRefAttr,
    FunctionType,
    InsertionPoint,
    Location,
    Operation,
    Type,
)

from pelton.runtime.call.dtypes import DType
from pelton.runtime.call.signature import Leaf, Parameter, ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import UNKNOWN, Dim
from pelton.runtime.executable import Executable, load

from ..ir.builder import ModuleBuilder
from ..ir.elements import dtype_row
from ..ir.exported import ExportedModule
from ..ir.module import new_module, set_signature
from ..ir.torch_types import TensorType
from ..lowering.custom.bodies import Argument, Bodies
from ..lowering.custom.operator import CustomOp
from ..lowering.custom.template import names_in
from ..spec.errors import SignatureError
from ..spec.locations import user_location
from ..spec.versions import versions
from ..targets.request import Storage, compile_request

_NUMBERS: dict[type, tuple[str, str]] = {
    bool: ("bool", "i1"),
    int: ("int", "i64"),
    float: ("float", "f64"),
}
"""What a Python number is in a signature, and in a module."""


_COMPILED: dict[Any, Executable] = {}
_LOCK = threading.Lock()
atexit.register(_COMPILED.clear)


def run_compiled(op: CustomOp, given: Mapping[str, Any]) -> Any:
    """Run an operator in eager: its body, compiled by IREE for the processor.

    One program serves all shapes of the same element types and numbers of dimensions.

    Args:
        op: The operator.
        given: The value of each argument, by name; tensors are on the processor.

    Raises:
        SignatureError: The shapes of the arguments do not fit.
        ExportError: The body is wrong.
        CompileError: The compiler refused it.
    """
    expected = _expected(op, given)
    arguments = [_argument(op, name, value) for name, value in given.items()]
    inputs = [given[a.name] for a in arguments if a.type is not None]
    executable = _executable(op, arguments, inputs, expected)
    return executable(*(i.detach() if isinstance(i, torch.Tensor) else i for i in inputs))


def _expected(op: CustomOp, given: Mapping[str, Any]) -> Sequence[torch.Tensor]:
    """Return results on the meta device; their making checks the shapes of the arguments."""
    meta = {
        name: value.detach().to("meta") if isinstance(value, torch.Tensor) else value
        for name, value in given.items()
    }
    namespace, name = op.name.split("::")
    overload = getattr(getattr(torch.ops, namespace), name).default
    try:
        made = overload(**meta)
    except RuntimeError as error:
        raise SignatureError(" ".join(str(error).split()), location=user_location()) from None
    return (made,) if isinstance(made, torch.Tensor) else made or ()


def _executable(
    op: CustomOp,
    arguments: Sequence[Argument],
    inputs: Sequence[Any],
    expected: Sequence[torch.Tensor],
) -> Executable:
    results = tuple((dtype_row(r.dtype, "a result"), r.dim()) for r in expected)
    stated = tuple((a.type, repr(a.constant)) for a in arguments)
    kinds = tuple(i.dtype if isinstance(i, torch.Tensor) else type(i) for i in inputs)
    key = (op.name, op.body, stated, kinds, results)
    with _LOCK:
        if key not in _COMPILED:
            _COMPILED[key] = _compile(op, arguments, inputs, results)
        return _COMPILED[key]


def _argument(op: CustomOp, name: str, value: Any) -> Argument:
    if isinstance(value, torch.Tensor):
        return Argument(name, _tensor_type(dtype_row(value.dtype, name), value.dim()))
    # A number that the text does not name is an argument, so that one program serves all values.
    if type(value) in _NUMBERS and isinstance(op.body, str) and name not in names_in(op.body):
        return Argument(name, _NUMBERS[type(value)][1])
    return Argument(name, None, value)


def _tensor_type(dtype: DType, rank: int) -> str:
    return TensorType((None,) * rank, dtype.mlir).builtin()


def _compile(
    op: CustomOp,
    arguments: Sequence[Argument],
    inputs: Sequence[Any],
    results: Sequence[tuple[DType, int]],
) -> Executable:
    builder = ModuleBuilder(new_module(op.name.replace("::", "_")))
    module = builder.module_op
    names = [argument.name for argument in arguments if argument.type is not None]
    signature = _signature(names, inputs, results)
    with module.context as context, Location.unknown():
        given = [Type.parse(a.type, context) for a in arguments if a.type is not None]
        returned = [Type.parse(_tensor_type(*result), context) for result in results]
        symbol = Bodies(module).symbol_for(op, arguments, returned)
        with builder.ip:
            function = func_dialect.FuncOp(signature.name, FunctionType.get(given, returned))
        block = function.add_entry_block()
        with InsertionPoint(block):
            callee = {"callee": FlatSymbolRefAttr.get(symbol)}
            called = Operation.create(
                "func.call", results=returned, operands=[*block.arguments], attributes=callee
            )
            func_dialect.ReturnOp([*called.results])
    set_signature(function.operation, signature)
    request = compile_request("cpu", {}, Storage())
    with request.private_file() as path:
        request.build(ExportedModule(module), path, private=True)
        return load(path)


def _signature(
    names: Sequence[str], inputs: Sequence[Any], results: Sequence[tuple[DType, int]]
) -> Signature:
    dims: list[Dim] = []
    leaves: list[Leaf] = []
    for name, value in zip(names, inputs, strict=True):
        if isinstance(value, torch.Tensor):
            sizes = tuple(f"{name}_dim{axis}" for axis in range(value.dim()))
            dims += [Dim(size) for size in sizes]
            leaves.append(TensorSpec(dtype_row(value.dtype, name), sizes))
        else:
            leaves.append(ScalarSpec(_NUMBERS[type(value)][0]))
    kind = "POSITIONAL_OR_KEYWORD"
    return Signature(
        name="main",
        parameters=tuple(Parameter(name, kind, index) for index, name in enumerate(names)),
        inputs=tuple(leaves),
        result_tree=0 if len(results) == 1 else ["tuple", list(range(len(results)))],
        results=tuple(TensorSpec(dtype, (UNKNOWN,) * rank) for dtype, rank in results),
        dims=tuple(dims),
        producer=versions(),
    )
