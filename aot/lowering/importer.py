"""Importer of captured programs into functions of the module under construction.

torch-mlir's importer (it comes with the IREE compiler) turns operators into operations. This file
decides which tensors become globals, stores changed buffers, and refuses unsupported operators, all
of them at once and with the user's lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from iree.compiler.extras import fx_importer
from iree.compiler.ir import (
    Context,
    FlatSymbolRefAttr,
    InsertionPoint,
    Location,
    Operation,
    Type,
    Value,
)

from ..capture.program import Program
from ..compat.fx_importer import NodeImporter, ProgramImporter
from ..compat.operators import HigherOrderOperator, OpOverload, schema_of
from ..decompositions.dialect import mlir_name
from ..ir.affinity import set_argument_devices
from ..ir.builder import GlobalAttributes, ModuleBuilder, TensorGlobal
from ..ir.torch_ops import TorchEmitter
from ..ir.torch_types import TensorType
from ..spec.errors import ExportError, SourceLocation, UnsupportedOpError
from ..spec.locations import location_of_node, with_lines
from ..spec.tensor_traits import DeviceAffinity
from . import importer_hops
from .custom.operator import find, key_of

INLINE_LIMIT = 1024
"""Constants of at most this many elements are literals in the code, larger ones are globals."""

_INLINE_DTYPES = (torch.float32, torch.int64, torch.int32)
"""Element types of which IREE compiles small literals; the others go through globals."""

_HIGHER_ORDER = (*importer_hops.NAMES, "auto_functionalized", "flex_attention")


@dataclass(frozen=True)
class StateName:
    """The names of a tensor of a program.

    Attributes:
        symbol: The name of its global.
        logical: Its name for archives, such as the `state_dict` key.
    """

    symbol: str
    logical: str


def import_program(
    builder: ModuleBuilder,
    program: Program,
    *,
    name: str,
    public: bool = True,
    mutable: Iterable[torch.Tensor] = (),
    name_of: Callable[[str], StateName] | None = None,
    attributes_of: Callable[[str, torch.Tensor], GlobalAttributes] | None = None,
    arg_device: Mapping[int, DeviceAffinity] | None = None,
) -> Operation:
    """Add a program to the module as a function.

    Args:
        builder: The module under construction.
        program: The program, normalised.
        name: The function's name; taken names are the caller's fault.
        public: Whether it is an entry point.
        mutable: The tensors that any program of the module changes: decided over all of them,
            before the first is imported.
        name_of: Gives the names of a parameter or buffer by its fully qualified name.
        attributes_of: Gives the attributes of its global.
        arg_device: The device of each flat input, by its position.

    Returns:
        The function's operation.

    Raises:
        UnsupportedOpError: Operators that have no form in the torch dialect; all of them.
        ExportError: Something else that cannot be imported; names the user's line.
    """
    refuse_unsupported(program.graph_module, builder)
    refuse_dtypes(program.graph_module)
    hooks = _Hooks(builder, {id(t) for t in mutable}, name_of or _auto_name, attributes_of)
    importer = _ProgramImporter(
        module=_ModuleView(builder.module_op),
        hooks=hooks,
        py_attr_tracker=builder.fx_py_attr_tracker,
        graph_node_importer_cls=_NodeImporter,
    )
    tracker = builder.fx_py_attr_tracker
    importer.use_cache(_Places(name, importer.context, py_attr_tracker=tracker))
    importer.symbol_table = builder.symbol_table
    hooks.importer = importer
    try:
        function = importer.import_program(
            program,  # type: ignore[arg-type]  # it has the attributes that are read
            func_name=name,
            func_visibility=None if public else "private",
            import_symbolic_shape_expressions=builder.options.import_symbolic_shape_expressions,
        )
    except (
        NotImplementedError,
        TypeError,
        ValueError,
        KeyError,
        AssertionError,
        RuntimeError,
    ) as error:
        if isinstance(error, ExportError):
            raise
        raise _import_error(error, hooks.last_node) from error
    set_argument_devices(function.operation, arg_device)
    return function.operation


def refuse_unsupported(module: torch.fx.GraphModule, builder: ModuleBuilder) -> None:
    """Refuse a graph with operators that have no form in the torch dialect.

    Raises:
        UnsupportedOpError: Names all of them, with the user's lines.
    """
    missing = with_lines(
        (str(node.target), location_of_node(node))
        for graph_module in module.modules()
        if isinstance(graph_module, torch.fx.GraphModule)
        for node in graph_module.graph.nodes
        if node.op == "call_function" and not _importable(node.target, builder)
    )
    if missing:
        raise UnsupportedOpError(
            f"operators without a lowering: {'; '.join(missing.values())}; rewrite them, or give a "
            "decomposition (aot.extend_aot_decompositions), or a body for a custom operator "
            "(aot.custom_ops.register_body)",
            operators=tuple(missing),
        )


def refuse_dtypes(module: torch.fx.GraphModule) -> None:
    """Refuse a graph with tensors of an element type that the torch dialect lacks.

    Raises:
        UnsupportedOpError: Names the types, with the user's lines.
    """
    found: dict[torch.dtype, SourceLocation | None] = {}
    for node in module.graph.nodes:
        value = node.meta.get("val")
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor):
                if item.dtype not in fx_importer.TORCH_DTYPE_TO_MLIR_TYPE_ASM:
                    found.setdefault(item.dtype, location_of_node(node))
    if found:
        listed = ", ".join(
            f"{d}" + (f" (at {place})" if place else "") for d, place in found.items()
        )
        raise UnsupportedOpError(
            f"element types that cannot be exported: {listed}; IREE's torch dialect has no such "
            "type: convert to one of bool, int8 to int64, uint8, float16, bfloat16, float32, "
            "float64, complex64"
        )


def _importable(target: Any, builder: ModuleBuilder) -> bool:
    if isinstance(target, HigherOrderOperator):
        return str(target) in _HIGHER_ORDER
    if not isinstance(target, OpOverload):
        return True
    if target in fx_importer.SYMBOLIC_TORCH_OPS or target in fx_importer.NODE_CANONICALIZE:
        return True
    if find(key_of(schema_of(target))) is not None:
        return True
    return bool(builder.context.is_registered_operation(mlir_name(target)))


def _import_error(error: Exception, node: torch.fx.Node | None) -> ExportError:
    what = f"operator {node.target}" if node is not None else "the program"
    text = " ".join(str(error).split())[:400] or type(error).__name__
    return UnsupportedOpError(
        f"{what} cannot be imported: {text}",
        operators=(str(node.target),) if node is not None else (),
        location=location_of_node(node) if node is not None else None,
    )


def _auto_name(qualified: str) -> StateName:
    return StateName(f"__auto.{qualified}", qualified)


class _ModuleView:
    """The shape in which the importer wants a module that is being built elsewhere."""

    def __init__(self, module_op: Operation) -> None:
        self.operation = module_op
        self.context = module_op.context
        self.body = module_op.regions[0].blocks[0]


class _Hooks(fx_importer.FxImporterHooks):
    """Decides where tensors live: in globals of the module, or as literals in the code."""

    def __init__(
        self,
        builder: ModuleBuilder,
        mutable: set[int],
        name_of: Callable[[str], StateName],
        attributes_of: Callable[[str, torch.Tensor], GlobalAttributes] | None,
    ) -> None:
        self.builder = builder
        self.mutable = mutable
        self.name_of = name_of
        self.attributes_of = attributes_of
        self.importer: Any = None
        self.last_node: torch.fx.Node | None = None

    def resolve_literal(
        self, gni: NodeImporter, literal: Any, info: fx_importer.InputInfo | None
    ) -> Value | None:
        if not isinstance(literal, torch.Tensor):
            return None
        known = self.builder.global_of(literal)
        if known is None:
            if literal.dtype in _INLINE_DTYPES and literal.numel() <= INLINE_LIMIT:
                return None
            shape = "_".join(map(str, literal.shape))
            symbol = f"__auto.constant_{shape}_{literal.dtype}"
            known = self._global(literal, StateName(symbol, symbol))
        return emit_load(known)

    def resolve_input(
        self, gni: NodeImporter, value: Any, info: fx_importer.InputInfo
    ) -> Value | None:
        if not isinstance(value, torch.Tensor):
            return None
        return emit_load(self._global(value, self.name_of(str(info.input_spec.target))))

    def store_produced_value(
        self, gni: NodeImporter, py_value: Any, produced_ir_value: Any, info: fx_importer.InputInfo
    ) -> None:
        target = self._global(py_value, self.name_of(str(info.input_spec.target)))
        emit_store(target, produced_ir_value)

    def _global(self, tensor: torch.Tensor, name: StateName) -> TensorGlobal:
        attributes = (
            self.attributes_of(name.logical, tensor) if self.attributes_of else GlobalAttributes()
        )
        if id(tensor) in self.mutable:
            attributes = GlobalAttributes(
                mutable=True,
                external=attributes.external,
                external_scope=attributes.external_scope,
                name_mapper=attributes.name_mapper,
                noinline=attributes.noinline,
            )
        return self.builder.tensor_global(tensor, name.symbol, attributes, name.logical)


def emit_load(source: TensorGlobal) -> Value:
    """Emit the load of a tensor global; return the value as a tensor of the torch dialect."""
    loaded = Operation.create(
        "util.global.load",
        results=[source.type],
        attributes={"global": FlatSymbolRefAttr.get(source.symbol)},
    ).result
    is_bool = source.dtype.name == "bool"
    stored = _stored_type(source)
    tensor = Operation.create(
        "torch_c.from_builtin_tensor", results=[Type.parse(stored.torch())], operands=[loaded]
    ).result
    if not is_bool:
        return tensor
    emit = _here()
    return emit.make("aten.ne.Scalar", stored.with_element("i1").torch(), tensor, emit.number(0))


def emit_store(target: TensorGlobal, value: Value) -> None:
    """Emit the store of a torch-dialect tensor to a global."""
    if target.dtype.name == "bool":
        emit = _here()
        int8 = emit.number(fx_importer.TORCH_DTYPE_TO_INT[torch.int8])
        stored = _stored_type(target).torch()
        value = emit.make("prims.convert_element_type", stored, value, int8)
    converted = Operation.create(
        "torch_c.to_builtin_tensor", results=[target.type], operands=[value]
    ).result
    Operation.create(
        "util.global.store",
        operands=[converted],
        attributes={"global": FlatSymbolRefAttr.get(target.symbol)},
    )


def _stored_type(target: TensorGlobal) -> TensorType:
    """Return the type of a global's value in the torch dialect; a bool is stored as a byte."""
    shape = tuple(target.type.shape)  # type: ignore[attr-defined]
    return TensorType(shape, "si8" if target.dtype.name == "bool" else target.dtype.torch_mlir)


def _here() -> TorchEmitter:
    """Return the emitter at the current insertion point and location."""
    return TorchEmitter(InsertionPoint.current, Location.current)


class _Places(fx_importer.ContextCache):
    """Gives every operation a place; for those without a line of the user's, the function's name.

    Where IREE finds no place for a piece of code, it writes memory that it never set in its stead,
    so that no two compiles of a program are equal.
    """

    def __init__(self, function: str, context: Context, **options: Any) -> None:
        super().__init__(context, **options)
        self._function = Location.file(f"<{function}>", 0, 0, context=context)
        self._unknown = Location.unknown(context)

    def get_node_location(self, node: torch.fx.Node) -> Location:
        found = super().get_node_location(node)
        return self._function if found is None or found == self._unknown else found


class _ProgramImporter(ProgramImporter):
    """The importer of one program; branches and loop bodies are imported where they are used."""

    def import_child_modules(
        self, module: torch.fx.GraphModule, parent: str, symbolic_shapes: bool
    ) -> None:
        targets = {str(node.target) for node in module.graph.nodes if node.op == "call_function"}
        if "flex_attention" in targets:  # which names functions
            super().import_child_modules(module, parent, symbolic_shapes)


class _NodeImporter(importer_hops.HigherOrderImporter):
    """The importer of one graph, with buffers, bool literals and custom operators."""

    def lazy_import_buffer(
        self, loc: Location, node: torch.fx.Node, buffer_value: Any, info: fx_importer.InputInfo
    ) -> None:
        super().lazy_import_buffer(loc, node, buffer_value, info)
        if info.store_producer_node is not None:
            self.resolve_node_value(node)  # load before any store, even where it is read late

    def import_operator(self, loc: Location, node: torch.fx.Node, target: Any) -> None:
        self.hooks.last_node = node
        super().import_operator(loc, node, target)

    def import_literal(self, value: Any, info: Any) -> Value:
        if isinstance(value, torch.Tensor) and value.dtype is torch.bool:
            found: Value = self.hooks.resolve_literal(self, value, info)
            return found
        return super().import_literal(value, info)

    def import_symbols(self, loc: Location, ranges: Any) -> None:
        integers = {name: found for name, found in ranges.items() if name[0] in "su"}
        super().import_symbols(loc, integers)

    def bind_symbolic_shape(self, loc: Location, node: torch.fx.Node) -> None:
        try:
            super().bind_symbolic_shape(loc, node)
        except (NotImplementedError, AssertionError, KeyError):
            pass  # a size with no affine form: the operation's own shape computation stands
