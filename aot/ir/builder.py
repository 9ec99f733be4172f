"""Building one MLIR module: its globals, its functions, and the names of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from iree.compiler.dialects import func as func_dialect
from iree.compiler.extras.fx_importer import RefTracker
from iree.compiler.ir import (
    ArrayAttr,
    Attribute,
    Block,
    Context,
    FunctionType,
    InsertionPoint,
    Location,
    MLIRError,
    Operation,
    RankedTensorType,
    StringAttr,
    SymbolTable,
    Type,
    TypeAttr,
    UnitAttr,
)

from pelton.runtime.call.dtypes import DType

from ..compat.fake_tensors import FakeTensor
from ..spec.errors import ExportError
from ..spec.meta_tensors import is_same_tensor
from ..spec.tensor_traits import DeviceTensorTrait, ExternalTensorTrait
from .affinity import affinity_attribute
from .digest import Resources
from .elements import check_tensor, dtype_row, elements_attribute, global_type, shape_of
from .exported import ExportedModule, ExternalParameter
from .initializers import zero_attribute, zero_initializer
from .torch_types import NativeTypeConverter

DTYPE_ATTRIBUTE = "pelton.dtype"
"""Attribute of a global whose element type MLIR cannot tell (unsigned integers and bool)."""


@dataclass(frozen=True)
class GlobalAttributes:
    """Initial value, mutability and linkage of a global.

    Attributes:
        mutable: Whether it may be stored to.
        external: Whether its value comes from an archive at load; None: as the tensor's
            `ExternalTensorTrait` says.
        external_scope: Scope of the archive; None: the trait's, else `model`.
        name_mapper: Maps the logical name to the external one; a None result keeps the name.
        noinline: Keeps the compiler from folding the value into the code.
        uninitialized: Leaves the initial value undefined.

    Raises:
        ExportError: Combinations that contradict each other.
    """

    mutable: bool = False
    external: bool | None = None
    external_scope: str | None = None
    name_mapper: Callable[[str], str | None] | None = None
    noinline: bool = False
    uninitialized: bool | None = None

    def __post_init__(self) -> None:
        if self.external and self.uninitialized:
            raise ExportError(
                "a global with external=True has a value; uninitialized=True contradicts it"
            )
        if self.uninitialized and not self.mutable:
            raise ExportError(
                "a global with uninitialized=True can only get a value with mutable=True"
            )

    def map_name(self, name: str) -> str:
        """Return the external name of a logical name."""
        mapped = self.name_mapper(name) if self.name_mapper is not None else None
        return name if mapped is None else mapped

    def infer_external_from_tensor(self, t: torch.Tensor) -> tuple[bool, str | None, str | None]:
        """Return whether a tensor is external, and the scope and name that its trait gives."""
        trait = ExternalTensorTrait.get(t)
        if trait is not None:
            return True, self.external_scope or trait.external_scope or None, trait.external_name
        return bool(self.external), self.external_scope, None


@dataclass(frozen=True)
class ModuleBuilderOptions:
    """Options of a module under construction.

    Attributes:
        import_symbolic_shape_expressions: Whether functions state how their sizes relate.
    """

    import_symbolic_shape_expressions: bool = True


@dataclass
class TensorGlobal:
    """A global that holds a tensor.

    Attributes:
        symbol: Its name in the module.
        op: Its `util.global`.
        type: The builtin tensor type of what it holds.
        dtype: The tensor's element type.
        mutable: Whether it may be stored to.
        tensor: The tensor that it was made from, if any; held so that its `id` is not reused.
    """

    symbol: str
    op: Operation
    type: Type
    dtype: DType
    mutable: bool
    tensor: torch.Tensor | None = None


class ModuleBuilder:
    """A module under construction.

    Args:
        module_op: The `builtin.module` to build in.
        options: See `ModuleBuilderOptions`.

    Attributes:
        module_op: The module's operation.
        body: Its block.
        context: Its MLIR context.
        symbol_table: Its symbols.
        ip: Where functions are added: the end of the module.
        last_global_op: The last global; the next one goes behind it, before all functions.
        cache: What belongs to the module and is made once, by key.
        global_ref_tracker: The global that was made of each tensor, by identity.
        fx_py_attr_tracker: The importer's elements attribute of each inline tensor, by identity.
        native_type_converter: Converts between types of the torch dialect and builtin ones.
        external_parameters: The parameters that the module takes from archives.
        resources: The data of globals that lies in the module, by its name there.
    """

    def __init__(
        self, module_op: Operation, *, options: ModuleBuilderOptions | None = None
    ) -> None:
        self.module_op = module_op
        self.options = options or ModuleBuilderOptions()
        self.context: Context = module_op.context
        self.body: Block = module_op.regions[0].blocks[0]
        self.symbol_table = SymbolTable(module_op)
        self.ip = InsertionPoint(self.body)
        self.last_global_op: Operation | None = None
        self.cache: dict[Any, Any] = {}
        self.global_ref_tracker = RefTracker()
        self.fx_py_attr_tracker = RefTracker()
        self.native_type_converter = NativeTypeConverter(self.context)
        self.external_parameters: list[ExternalParameter] = []
        self._external: dict[tuple[str, str], ExternalParameter] = {}
        self.resources: dict[str, bytes] = {}
        self.globals: dict[int, TensorGlobal] = {}
        self._reserved: set[str] = set()

    def unique_auto_symbol(self, requested_name: str) -> str:
        """Return `requested_name`, or it with `$1`, `$2`, … where it is taken."""
        name, number = requested_name, 0
        while name in self.symbol_table or name in self._reserved:
            number += 1
            name = f"{requested_name}${number}"
        return name

    def reserve_symbol(self, requested_name: str) -> str:
        """Return a free name like `requested_name`, reserved for a function to come."""
        name = self.unique_auto_symbol(requested_name)
        self._reserved.add(name)
        return name

    def torch_dtype_to_iree_type(self, dtype: torch.dtype) -> Type:
        """Return the element type of builtin tensors for a torch element type.

        Raises:
            ExportError: There is none.
        """
        return Type.parse(dtype_row(dtype, "a tensor").mlir, self.context)

    def create_func_op(
        self,
        symbol_name: str,
        argument_types: Sequence[Type],
        is_public: bool = True,
        add_entry_block: bool = True,
        argument_attributes: ArrayAttr | list[Any] | None = None,
    ) -> tuple[str, func_dialect.FuncOp]:
        """Add a function without results yet; return its final name and the operation.

        Args:
            symbol_name: The name to give it; a taken one gets a suffix.
            argument_types: The types of its arguments.
            is_public: Whether it is an entry point.
            add_entry_block: Whether to add its first block.
            argument_attributes: The attributes of each argument.
        """
        with self.ip, Location.unknown(self.context):
            actual = self.unique_auto_symbol(symbol_name)
            function = func_dialect.FuncOp(
                actual,
                FunctionType.get(list(argument_types), []),
                visibility=None if is_public else "private",
            )
            if argument_attributes is not None:
                function.arg_attrs = argument_attributes
            if add_entry_block:
                function.add_entry_block()
            self.symbol_table.insert(function)
        return actual, function

    def create_tensor_global(
        self,
        symbol_name: str,
        t: torch.Tensor,
        *,
        attrs: GlobalAttributes,
        logical_name: str | None = None,
    ) -> tuple[str, Operation, Type]:
        """Add a global initialised with a tensor: its values, or a reference to an archive.

        Args:
            symbol_name: The name to give it; a taken one gets a suffix.
            t: The tensor.
            attrs: How it is initialised.
            logical_name: Name from which the external one is made; default: `symbol_name`.

        Returns:
            The final name, the operation, and the type of the value.

        Raises:
            ExportError: The tensor has no data to put inline, or no known element type.
        """
        check_tensor(t, f"tensor {logical_name or symbol_name}", "use")
        dtype = dtype_row(t.dtype, f"tensor {symbol_name}")
        type_ = global_type(dtype, shape_of(t), self.context)
        external, scope, name = attrs.infer_external_from_tensor(t)
        initial: Attribute
        if attrs.uninitialized:
            initial = Attribute.parse(f"#util.uninitialized : {type_}", self.context)
        elif external:
            scope = scope or "model"
            name = name or attrs.map_name(logical_name or symbol_name)
            self._add_external(ExternalParameter(scope, name, t))
            initial = _named_parameter(scope, name, type_, self.context)
        else:
            initial = elements_attribute(t, type_, self.context, self.resources)
        extra: dict[str, Attribute] = {}
        device = DeviceTensorTrait.get(t)
        if device is not None:
            extra["stream.affinity"] = affinity_attribute(device, self.context)
        actual, op = self._create_global(symbol_name, type_, attrs, initial, dtype, extra)
        return actual, op, type_

    def create_typed_global(
        self,
        symbol_name: str,
        global_type: Type,
        *,
        attrs: GlobalAttributes,
        logical_name: str | None = None,
        dtype: DType | None = None,
        initial: Attribute | None = None,
    ) -> tuple[str, Operation]:
        """Add a global of a type: with a value, zero, left undefined, or from an archive.

        Args:
            symbol_name: The name to give it; a taken one gets a suffix.
            global_type: Type of its value; it must have a static shape.
            attrs: How it is initialised.
            logical_name: Name from which the external one is made; default: `symbol_name`.
            dtype: The element type, where the MLIR type does not tell it.
            initial: Its initial value; None: zero, unless `attrs` says otherwise.

        Returns:
            The final name and the operation.

        Raises:
            ExportError: The type is a tensor of dynamic shape.
        """
        if attrs.uninitialized:
            initial = Attribute.parse(f"#util.uninitialized : {global_type}", self.context)
        elif attrs.external:
            name = attrs.map_name(logical_name or symbol_name)
            scope = attrs.external_scope or "model"
            initial = _named_parameter(scope, name, global_type, self.context)
        elif initial is None:
            initial = zero_attribute(global_type, self.context)
            made = self._create_global(symbol_name, global_type, attrs, initial, dtype, {})
            if attrs.mutable and isinstance(global_type, RankedTensorType):
                self.last_global_op = zero_initializer(made[0], global_type, self._next_place())
            return made
        return self._create_global(symbol_name, global_type, attrs, initial, dtype, {})

    def _add_external(self, added: ExternalParameter) -> None:
        known = self._external.setdefault((added.scope, added.name), added)
        if known is added:
            self.external_parameters.append(added)
        elif not is_same_tensor(known.tensor, added.tensor):
            raise ExportError(
                f"two tensors have the external name {added.name!r} in scope {added.scope!r}; "
                "give their modules different prefixes or scopes"
            )

    def _create_global(
        self,
        symbol_name: str,
        type_: Type,
        attrs: GlobalAttributes,
        initial: Attribute,
        dtype: DType | None,
        extra: dict[str, Attribute],
    ) -> tuple[str, Operation]:
        with Location.unknown(self.context):
            actual = self.unique_auto_symbol(symbol_name)
            attributes = {
                "sym_name": StringAttr.get(actual),
                "sym_visibility": StringAttr.get("private"),
                "type": TypeAttr.get(type_),
                "initial_value": initial,
                **extra,
            }
            if attrs.mutable:
                attributes["is_mutable"] = UnitAttr.get()
            if attrs.noinline:
                attributes["noinline"] = UnitAttr.get()
            if dtype is not None and dtype.name in ("bool", "uint8", "uint16", "uint32", "uint64"):
                attributes[DTYPE_ATTRIBUTE] = StringAttr.get(dtype.name)
            op = Operation.create("util.global", attributes=attributes, ip=self._next_place())
        self.symbol_table.insert(op)
        self.last_global_op = op
        return actual, op

    def _next_place(self) -> InsertionPoint:
        """Return where the next global goes: behind the last one, before all functions."""
        if self.last_global_op is None:
            return InsertionPoint.at_block_begin(self.body)
        return InsertionPoint.after(self.last_global_op)

    def tensor_global(
        self,
        tensor: torch.Tensor,
        symbol_name: str,
        attrs: GlobalAttributes,
        logical_name: str | None = None,
    ) -> TensorGlobal:
        """Return the global of a tensor, made now unless the same tensor has one already.

        Args:
            tensor: The tensor.
            symbol_name: The name of a new global; a taken one gets a suffix.
            attrs: How a new global is initialised.
            logical_name: Name from which the external one is made; default: `symbol_name`.

        Raises:
            ExportError: The tensor has no data to put inline, or no known element type.
        """
        known = self.globals.get(id(tensor))
        if known is None:
            symbol, op, type_ = self.create_tensor_global(
                symbol_name, tensor, attrs=attrs, logical_name=logical_name
            )
            dtype = dtype_row(tensor.dtype, symbol)
            known = TensorGlobal(symbol, op, type_, dtype, attrs.mutable, tensor)
            self.globals[id(tensor)] = known
        return known

    def global_of(self, tensor: torch.Tensor) -> TensorGlobal | None:
        """Return the global of a tensor, or of another tensor object over the same elements.

        torch gives what a function closes over as an object of its own.
        """
        known = self.globals.get(id(tensor))
        if known is None and not tensor.is_meta and tensor.numel():
            place = place_of(tensor)
            known = next(
                (
                    g
                    for g in self.globals.values()
                    if g.tensor is not None and place_of(g.tensor) == place
                ),
                None,
            )
        return known

    def exported(self, eager: Mapping[str, Any] | None = None) -> ExportedModule:
        """Return the module as built so far, with its parameters and resources.

        Args:
            eager: The `EagerProgram` that each entry point was exported from, by name.
        """
        return ExportedModule(
            self.module_op,
            tuple(self.external_parameters),
            Resources(self.resources),
            eager or {},
        )

    def finalize_construct(self) -> None:
        """Verify the finished module.

        Raises:
            ExportError: The module is not valid; the message is the verifier's.
        """
        try:
            self.module_op.verify()
        except MLIRError as error:
            self.handle_mlir_error(self.module_op, error, "the module is not valid")

    def handle_mlir_error(self, op: Operation, e: MLIRError, message: str) -> None:
        """Raise an ExportError for an error of MLIR.

        Args:
            op: The operation that is not valid.
            e: The error, with its diagnostics.
            message: The problem, to which the diagnostics are added.

        Raises:
            ExportError: Always.
        """
        details = "; ".join(f"{d.location}: {d.message}" for d in e.error_diagnostics)
        raise ExportError(f"{message}: {details or e}") from e


def _named_parameter(scope: str, name: str, type_: Type, context: Context) -> Attribute:
    for text in (scope, name):
        # IREE prints these texts as they are, so that with others no module could be read again.
        if any(character in '"\\' or ord(character) < 32 for character in text):
            raise ExportError(
                f"the external name {text!r} has a quote, a backslash or a control character, "
                "which IREE cannot store; give the tensor another name"
            )
    return Attribute.parse(f'#flow.parameter.named<"{scope}"::"{name}"> : {type_}', context)


def place_of(tensor: torch.Tensor) -> tuple[Any, ...] | None:
    """Return what two tensors over the same elements share; None for one without memory."""
    if tensor.is_meta or isinstance(tensor, FakeTensor) or not tensor.numel():
        return None
    return tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tuple(tensor.stride())
