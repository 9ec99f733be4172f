"""Abstract types of arguments, results and uninitialised globals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from iree.compiler.ir import (
    F32Type,
    F64Type,
    IndexType,
    IntegerType,
    Location,
    RankedTensorType,
    Type,
    Value,
)

from ...compat.pytrees import tree_map
from ...ir.builder import ModuleBuilder
from ...ir.elements import dtype_row
from ...spec.errors import ExportError
from ...spec.inputs import DimensionInputInfo, InputInfo, NamedDimension
from ...spec.locations import user_location
from ...spec.sizes import is_static
from ..values.intrinsics import Intrinsic
from ..values.scalars import IrImmediateScalar
from ..values.sizes import DYNAMIC
from ..values.tensors import IrImmediateTensor


class AbstractTypedef:
    """The declared type of an argument, result or global."""

    def get_ir_type(self, builder: ModuleBuilder) -> Type:
        """Return its type in the module.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define get_ir_type()")


class AbstractIntrinsic(AbstractTypedef):
    """An abstract type of one argument, for which a procedure receives one traced value."""

    def create_intrinsic(self, value: Value) -> Intrinsic:
        """Return the traced value of an argument.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define create_intrinsic()")


class Abstractifiable:
    """A value with an abstract type of its own."""

    def abstractify(self) -> AbstractTypedef:
        """Return the abstract type.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define abstractify()")


class TreeAbstractifiable:
    """A value with a tree of abstract types of its own."""

    def abstractify_tree(self) -> Any:
        """Return the tree of abstract types.

        Raises:
            NotImplementedError: The class does not define it.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define abstractify_tree()")


class AbstractTensor(AbstractIntrinsic):
    """The type of a tensor of known rank and element type.

    Args:
        size: One entry for each dimension: its static size, None for a dynamic one, or the name
            of a dynamic one (text or `NamedDimension`): dimensions of one name have one size.
        dtype: The element type.

    Raises:
        ExportError: A size is of another type or negative, or `dtype` is no element type.

    Example:
        >>> AbstractTensor(3, None, dtype=torch.float16)
        AbstractTensor(3, None, dtype=torch.float16)
    """

    def __init__(
        self, *size: int | str | NamedDimension | None, dtype: torch.dtype = torch.float32
    ) -> None:
        for entry in size:
            if isinstance(entry, (tuple, list, torch.Size)):
                raise ExportError(
                    f"AbstractTensor takes its sizes one by one: AbstractTensor"
                    f"({', '.join(map(str, entry))}), not AbstractTensor({entry!r})",
                    location=user_location(),
                )
            known = isinstance(entry, (str, NamedDimension)) or entry is None
            if not known and (type(entry) is not int or entry < 0):
                raise ExportError(
                    f"AbstractTensor: a size is a number, None or a name, not {entry!r}",
                    location=user_location(),
                )
        if not isinstance(dtype, torch.dtype):
            raise ExportError(
                f"AbstractTensor: dtype must be a torch.dtype, got {dtype!r}",
                location=user_location(),
            )
        self.size = size
        self.dtype = dtype

    @property
    def sizes(self) -> tuple[int | None, ...]:
        """The static sizes, with None for dynamic ones."""
        return tuple(entry if is_static(entry) else None for entry in self.size)

    @property
    def type_shape(self) -> list[int]:
        """The shape as in its MLIR type, with `sizes.DYNAMIC` for dynamic sizes."""
        return [DYNAMIC if size is None else size for size in self.sizes]

    def size_names(self) -> dict[int, str]:
        """Return the names of the named dimensions.

        Example:
            >>> AbstractTensor("batch", 8).size_names()
            {0: 'batch'}
        """
        names: dict[int, str] = {}
        for axis, entry in enumerate(self.size):
            if isinstance(entry, NamedDimension):
                names[axis] = entry.name
            elif isinstance(entry, str):
                names[axis] = entry
        return names

    def get_ir_type(self, builder: ModuleBuilder) -> Type:
        """Return the builtin tensor type."""
        element = builder.torch_dtype_to_iree_type(self.dtype)
        with builder.context, Location.unknown():
            return RankedTensorType.get(self.type_shape, element)

    def create_intrinsic(self, ir_value: Value) -> Intrinsic:
        """Return the traced tensor of an argument."""
        return IrImmediateTensor(ir_value, self.dtype)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AbstractTensor):
            return NotImplemented
        return self.size == other.size and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash((self.size, self.dtype))

    def __str__(self) -> str:
        sizes = ", ".join("?" if size is None else str(size) for size in self.sizes)
        return f"{dtype_row(self.dtype, 'a tensor')}[{sizes}]"

    def __repr__(self) -> str:
        sizes = "".join(f"{size!r}, " for size in self.size)
        return f"AbstractTensor({sizes}dtype={self.dtype})"


class AbstractScalar(AbstractIntrinsic):
    """The type of a scalar.

    Args:
        label: Its name in messages.
        type_producer: Returns its MLIR type in the current context.

    Example:
        >>> AbstractI32
        AbstractI32
    """

    def __init__(self, label: str, type_producer: Callable[[], Type]) -> None:
        self.label = label
        self.type_producer = type_producer

    def get_ir_type(self, builder: ModuleBuilder) -> Type:
        """Return the MLIR scalar type."""
        with builder.context:
            return self.type_producer()

    def create_intrinsic(self, ir_value: Value) -> Intrinsic:
        """Return the traced scalar of an argument."""
        return IrImmediateScalar(ir_value)

    def __repr__(self) -> str:
        return self.label


class AbstractSize(AbstractScalar):
    """The type of a size with bounds, as `aot.DimensionInputInfo` declares it.

    Args:
        bounds: `(min, opt, max)`.

    Example:
        >>> AbstractSize((1, 8, 64))
        AbstractSize((1, 8, 64))
    """

    def __init__(self, bounds: tuple[int, int, int]) -> None:
        super().__init__(f"AbstractSize({bounds})", IndexType.get)
        self.bounds = bounds


AbstractIndex = AbstractScalar("AbstractIndex", IndexType.get)
"""The type of sizes and positions: an integer as wide as the device's addresses."""

AbstractBool = AbstractScalar("AbstractBool", lambda: IntegerType.get_signless(1))
"""The type of bools."""

AbstractI32 = AbstractScalar("AbstractI32", lambda: IntegerType.get_signless(32))
"""The type of 32-bit integers."""

AbstractI64 = AbstractScalar("AbstractI64", lambda: IntegerType.get_signless(64))
"""The type of 64-bit integers."""

AbstractF32 = AbstractScalar("AbstractF32", F32Type.get)
"""The type of 32-bit floating-point numbers."""

AbstractF64 = AbstractScalar("AbstractF64", F64Type.get)
"""The type of 64-bit floating-point numbers."""


def abstractify(tree: Any) -> Any:
    """Return the tree of abstract types of a tree of values.

    Args:
        tree: Tensors, numbers, declarations of globals, abstract types, and containers of them.

    Raises:
        ExportError: A leaf has no abstract type.

    Example:
        >>> abstractify({"x": torch.zeros(2, 3)})
        {'x': AbstractTensor(2, 3, dtype=torch.float32)}
    """
    if isinstance(tree, TreeAbstractifiable):
        return tree.abstractify_tree()
    return tree_map(abstractify_single_value, tree)


def abstractify_single_value(value: Any) -> AbstractTypedef:
    """Return the abstract type of one value.

    Raises:
        ExportError: The value has none.

    Example:
        >>> abstractify_single_value(1.5)
        AbstractF32
    """
    if isinstance(value, AbstractTypedef):
        return value
    if isinstance(value, Abstractifiable):
        return value.abstractify()
    if isinstance(value, torch.Tensor):
        return AbstractTensor(*map(int, value.shape), dtype=value.dtype)
    scalar = scalar_type_of(value)
    if scalar is not None:
        return scalar
    raise ExportError(
        f"a {type(value).__name__} has no abstract type; give a tensor, a number, or an Abstract* "
        "type",
        location=user_location(),
    )


def from_spec(spec: InputInfo | DimensionInputInfo, name: str) -> AbstractIntrinsic:
    """Return the abstract type of an input spec.

    Args:
        spec: An input spec, as for `aot.export`.
        name: The argument's name, from which dimensions without a name get theirs.

    Example:
        >>> from_spec(InputInfo((2, NamedDimension("n", 1, 2, 3)), torch.float32), "x")
        AbstractTensor(2, NamedDimension(name='n', min=1, opt=2, max=3), dtype=torch.float32)
    """
    if isinstance(spec, DimensionInputInfo):
        return AbstractSize(spec.value_bounds)
    sizes = [
        NamedDimension(f"{name}_dim{axis}", *size) if isinstance(size, tuple) else size
        for axis, size in enumerate(spec.shape)
    ]
    return AbstractTensor(*sizes, dtype=spec.dtype)


def scalar_type_of(value: Any) -> AbstractScalar | None:
    """Return the abstract type of a Python number by torch's default dtypes, else None."""
    if isinstance(value, bool):
        return AbstractBool
    if isinstance(value, int):
        return AbstractI64
    return AbstractF32 if isinstance(value, float) else None
