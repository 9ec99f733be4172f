"""Functions of a module that are bodies of custom operators, one for each set of types."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler.dialects import arith
from iree.compiler.dialects import func as func_dialect
from iree.compiler.dialects import tensor as tensor_dialect
from iree.compiler.ir import (
    AffineMap,
    AffineMapAttr,
    Attribute,
    Block,
    Context,
    FloatAttr,
    FunctionType,
    IndexType,
    InsertionPoint,
    Location,
    MLIRError,
    Module,
    Operation,
    OpView,
    RankedTensorType,
    StringAttr,
    SymbolTable,
    Type,
    Value,
)

from ...ir.assertions import emit_requirement
from ...ir.module import CUSTOM_OP, operations_within
from ...ir.torch_types import NativeTypeConverter
from ...spec.errors import ExportError, PeltonError
from ...spec.sizes import is_static
from .operator import CustomOp, tensor_arguments
from .template import TensorForm, fill_in, literal, quoted, size


@dataclass(frozen=True)
class Argument:
    """An argument of a call: typed if its value is known at run time only, else a constant.

    Attributes:
        name: Its name in the schema.
        type: The builtin type in MLIR's text, with dynamic sizes; None for a constant.
        constant: The constant.
    """

    name: str
    type: str | None
    constant: Any = None


@dataclass(frozen=True)
class BodyBuilder:
    """What a function that emits a body is given, beside the arguments.

    Attributes:
        result_types: The types of the values that it must return.
        sizes: The sizes named in the operator's shapes, as values of type index.
        maps: The indexing map of each tensor argument by name, and of `result` or `result0`, ….
        iterators: The kinds of the loops that those maps are for.
    """

    result_types: Sequence[Type]
    sizes: Mapping[str, Value]
    maps: Mapping[str, AffineMap]
    iterators: Sequence[str]


class Bodies:
    """The functions in a module that are bodies of custom operators.

    Args:
        module_op: The module.

    Attributes:
        types: The converter between types of the torch dialect and builtin ones.
    """

    def __init__(self, module_op: Operation) -> None:
        self.types = NativeTypeConverter(module_op.context)
        self._module = module_op
        self._symbols = SymbolTable(module_op)
        self._made: dict[Any, str] = {}

    def symbol_for(
        self, op: CustomOp, arguments: Sequence[Argument], results: Sequence[Type]
    ) -> str:
        """Return the name of a function that computes an operator, made now unless there is one.

        Args:
            op: The operator.
            arguments: The arguments, in the order of the schema; those with a type become the
                function's.
            results: The builtin types of the results, with dynamic sizes.

        Raises:
            ExportError: The body is wrong; names the operator and the line of its text.
        """
        stated = tuple((a.name, a.type, repr(a.constant)) for a in arguments)
        key = (op.name, stated, tuple(map(str, results)))
        if key not in self._made:
            form = _Form(op, arguments, results, self._module.context)
            function = form.function(self._free_name(op.name.replace("::", ".")))
            InsertionPoint(self._module.regions[0].blocks[0]).insert(function)
            self._symbols.insert(function)
            self._made[key] = StringAttr(function.attributes["sym_name"]).value
        return self._made[key]

    def _free_name(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self._symbols:
            number += 1
            name = f"{wanted}${number}"
        return name


class _Form:
    """An operator's body for arguments of certain types."""

    def __init__(
        self,
        op: CustomOp,
        arguments: Sequence[Argument],
        results: Sequence[Type],
        context: Context,
    ) -> None:
        self.op = op
        self.arguments = arguments
        self.results = results
        self.context = context
        self.inputs = [argument for argument in arguments if argument.type is not None]
        by_name = {a.name: a.type and Type.parse(a.type, context) for a in arguments}
        self.tensors = [(name, by_name[name]) for name in tensor_arguments(op.schema)]
        self.ranks = [None if type_ is None else rank_of(type_) for _, type_ in self.tensors]
        self._describe()

    def _describe(self) -> None:
        """Derive the loops, and the fields of each tensor."""
        pattern, single = self.op.shapes, len(self.results) == 1
        names = ["result"] if single else [f"result{i}" for i in range(len(self.results))]
        types = [(n, t) for n, t in self.tensors if t is not None]
        types += zip(names, self.results, strict=True)
        if pattern is None:
            rank = rank_of(self.results[0]) if self.results else 0
            self.loops, parallel = tuple(f"d{i}" for i in range(rank)), rank
            shapes = {name: tuple(f"d{i}" for i in range(rank_of(type_))) for name, type_ in types}
        else:
            rest = pattern.rank_of_rest(self.ranks)
            self.loops, parallel = pattern.loops(rest)
            shapes = {
                name: shape.names(rest)
                for (name, _), shape in zip(self.tensors, pattern.arguments, strict=True)
            }
            shapes |= {n: s.names(rest) for n, s in zip(names, pattern.results, strict=True)}
        self.iterators = [
            "parallel" if i < parallel else "reduction" for i in range(len(self.loops))
        ]
        self.forms = [
            TensorForm(n, element_of(t), shapes[n], self._map(shapes[n])) for n, t in types
        ]

    def _map(self, dims: Sequence[str]) -> str:
        """Return the indexing map of a tensor; with no stated shapes, its first loops."""
        loops = ", ".join(f"d{i}" for i in range(max(len(self.loops), 0)))
        places = [self.loops.index(dim) if dim in self.loops else 0 for dim in dims]
        return f"affine_map<({loops}) -> ({', '.join(f'd{place}' for place in places)})>"

    def function(self, symbol: str) -> Operation:
        """Return the function, not yet in a module."""
        body = self.op.body
        made = self._parsed(symbol, body) if isinstance(body, str) else self._emitted(symbol, body)
        with self.context, Location.unknown():
            made.attributes["sym_visibility"] = StringAttr.get("private")
            made.attributes[CUSTOM_OP] = StringAttr.get(self.op.name)
            _fold_truncations(made)
            if self.op.shapes is not None:
                self._check_sizes(made.regions[0].blocks[0])
        return made

    # Text.

    def _parsed(self, symbol: str, text: str) -> Operation:
        fields = {"iterators": "[" + ", ".join(f'"{kind}"' for kind in self.iterators) + "]"}
        for form in self.forms:
            fields |= form.fields()
        for argument in self.arguments:
            if argument.type is None:
                fields[argument.name] = literal(argument.constant)
        filled = fill_in(self.op, text, fields)
        types = ", ".join(map(str, self.results))
        inputs = ", ".join(f"%{argument.name}: {argument.type}" for argument in self.inputs)
        # All on one line, so that the lines of the body are counted from its first.
        before = f'func.func @"{symbol}"({inputs}) -> ({types}) {{ {self._prologue()} '
        source = f"{before}{filled}\n}}"
        try:
            parsed = Operation.parse(
                source, source_name=f"body of {self.op.name}", context=self.context
            )
        except (MLIRError, ValueError) as error:
            raise self._syntax_error(error, filled) from error
        return parsed.operation

    def _prologue(self) -> str:
        """Return the operations before a text body: its constants and sizes."""
        lines = []
        for argument in self.arguments:
            type_ = _number_type(argument.constant)
            if argument.type is None and type_ is not None:
                value = literal(argument.constant)
                suffix = "" if type_ == "i1" else f" : {type_}"
                lines.append(f"%{argument.name} = arith.constant {value}{suffix}")
        if self.op.shapes is not None:
            lines += self._size_lines()
        return " ".join(lines)

    def _size_lines(self) -> list[str]:
        lines, known = [], set[str]()
        for form in self.forms[: len([r for r in self.ranks if r is not None])]:
            for axis, dim in enumerate(form.dims):
                if dim not in known and not dim.isdigit():
                    known.add(dim)
                    lines.append(f"%axis.{dim} = arith.constant {axis} : index")
                    lines.append(
                        f"{size(dim)} = tensor.dim %{form.name}, %axis.{dim} : {form.type}"
                    )
        numbers = {dim for form in self.forms for dim in form.dims if dim.isdigit()}
        return [*lines, *(f"{size(n)} = arith.constant {n} : index" for n in sorted(numbers))]

    def _syntax_error(self, error: Exception, filled: str) -> ExportError:
        diagnostics = getattr(error, "error_diagnostics", None) or []
        found = [(str(d.location), " ".join(d.message.split())) for d in diagnostics]
        place, message = found[0] if found else ("", " ".join(str(error).split())[:400])
        position = re.search(r":(\d+):\d+", place)
        line = int(position[1]) if position else 0
        if 0 < line <= filled.count("\n") + 1:
            return self.op.error(f"line {line} of its body: {message}\n{quoted(filled, line)}")
        return self.op.error(f"its body: {message}")

    # Functions.

    def _emitted(self, symbol: str, emit: Callable[..., Any]) -> Operation:
        with self.context, Location.name(f"body of {self.op.name}"):
            inputs = [Type.parse(a.type) for a in self.inputs if a.type is not None]
            function = func_dialect.FuncOp(symbol, FunctionType.get(inputs, list(self.results)))
            block = function.add_entry_block()
            with InsertionPoint(block):
                returned = self._run(emit, block)
                func_dialect.ReturnOp(returned)
            alone = Module.create()
            alone.body.append(function)
            try:
                alone.operation.verify()
            except MLIRError as error:
                raise self._syntax_error(error, "") from error
            made: Operation = function.detach_from_parent().operation
            return made

    def _run(self, emit: Callable[..., Any], block: Block) -> list[Value]:
        values = iter(block.arguments)
        given = {
            argument.name: argument.constant if argument.type is None else next(values)
            for argument in self.arguments
        }
        sizes = self._bind(given, lambda size, expected, what: None) if self.op.shapes else {}
        maps = {form.name: _affine_map(form.map) for form in self.forms}
        builder = BodyBuilder(self.results, sizes, maps, self.iterators)
        try:
            made = emit(builder, **given)
        except PeltonError:
            raise
        except Exception as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:600]
            raise self.op.error(f"its body cannot be built: {reason}") from error
        returned = (
            list(made) if isinstance(made, (tuple, list)) else [made] if made is not None else []
        )
        types = [str(value.type) if isinstance(value, Value) else repr(value) for value in returned]
        if types != [str(type_) for type_ in self.results]:
            expected = ", ".join(map(str, self.results)) or "nothing"
            raise self.op.error(
                f"its body returned {', '.join(types) or 'nothing'}; it must return {expected}"
            )
        return returned

    # Checks.

    def _bind(
        self, given: Mapping[str, Any], require: Callable[[Any, Any, str], None]
    ) -> dict[str, Any]:
        assert self.op.shapes is not None
        sizes = [
            None if type_ is None else _sizes_of(given[name], rank_of(type_))
            for name, type_ in self.tensors
        ]
        return self.op.shapes.bind(sizes, [name for name, _ in self.tensors], require)

    def _check_sizes(self, block: Block) -> None:
        """Check that the arguments, and then the results, have the shapes that are stated."""
        assert self.op.shapes is not None
        given = dict(zip((a.name for a in self.inputs), block.arguments, strict=True))
        repeated: list[tuple[Any, Any, str]] = []
        with InsertionPoint.at_block_begin(block):
            sizes = self._bind(given, lambda *found: repeated.append(found))
            for size, expected, what in repeated:
                self._require(size, expected, what)
        end = [*block.operations][-1].operation
        rest = self.op.shapes.rank_of_rest(self.ranks)
        with InsertionPoint(end):
            for shape, value in zip(self.op.shapes.results, end.operands, strict=True):
                dims = shape.names(rest)
                for dim, size in zip(dims, _sizes_of(value, len(dims)), strict=True):
                    expected = int(dim) if dim.isdigit() else sizes[dim]
                    self._require(size, expected, f"its body returned another size than {dim}")

    def _require(self, size: Any, expected: Any, what: str) -> None:
        if is_static(expected):
            expected = arith.constant(IndexType.get(), expected)
        equal = arith.cmpi(arith.CmpIPredicate.eq, size, expected)
        emit_requirement(equal, f"custom operator {self.op.name}: {what}")


def rank_of(type_: Type) -> int:
    """Return the number of dimensions of a builtin tensor type."""
    return int(RankedTensorType(type_).rank)


def element_of(type_: Type) -> str:
    """Return the element type of a builtin tensor type."""
    return str(RankedTensorType(type_).element_type)


def _sizes_of(value: Value, rank: int) -> list[Value]:
    axes = [arith.constant(IndexType.get(), axis) for axis in range(rank)]
    return [tensor_dialect.dim(value, axis) for axis in axes]


def _number_type(value: Any) -> str | None:
    if isinstance(value, bool):
        return "i1"
    return "i64" if isinstance(value, int) else "f64" if isinstance(value, float) else None


def _affine_map(text: str) -> AffineMap:
    found: AffineMap = AffineMapAttr(Attribute.parse(text)).value
    return found


def _fold_truncations(function: Operation) -> None:
    """Round constants that are cut to a narrower float.

    MLIR leaves those that are not exact, and IREE (3.13) then fails: it evaluates constants on its
    virtual machine, which has no such operation.
    """
    for op in operations_within(function, "arith.truncf"):
        owner = op.operands[0].owner
        if not isinstance(owner, (Operation, OpView)) or owner.operation.name != "arith.constant":
            continue
        if not isinstance(owner.operation.attributes["value"], FloatAttr):
            continue
        wide = FloatAttr(owner.operation.attributes["value"]).value
        with InsertionPoint(op):
            narrow = arith.constant(op.results[0].type, wide)
        op.results[0].replace_all_uses_with(narrow)
        op.erase()
