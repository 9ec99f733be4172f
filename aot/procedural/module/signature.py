"""Signatures of procedures, as the artifact stores them."""

from __future__ import annotations

from typing import Any

from iree.compiler.ir import Value

from pelton.runtime.call.signature import ConstantSpec, Leaf, ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import Dim

from ...capture.dynamic_shapes import UNKNOWN
from ...ir.elements import dtype_row
from ...spec.errors import ExportError
from ...spec.inputs import NamedDimension
from ...spec.sizes import is_static
from ...spec.versions import versions
from ..globals.types import AbstractScalar, AbstractSize, AbstractTensor
from ..values.arithmetic import is_float
from ..values.scalars import IrScalar
from ..values.tensors import IrTensor
from .procedures import Procedure


def signature_of(procedure: Procedure, mutates: tuple[str, ...]) -> Signature:
    """Return the signature of a traced procedure.

    Args:
        procedure: The procedure.
        mutates: The names of the state that it mutates, itself or by its calls.

    Raises:
        ExportError: A dimension has different bounds in two arguments.
    """
    dims = _Dims(procedure)
    inputs = tuple(dims.input(index, path) for index, path in procedure.paths().items())
    return Signature(
        name=procedure.name,
        parameters=tuple(procedure.parameters),
        inputs=inputs,
        result_tree=procedure.trace.result_tree,
        results=tuple(dims.result(leaf) for leaf in procedure.trace.results),
        dims=tuple(dims.table.values()),
        mutates=mutates,
        location=str(procedure.decl.location),
        producer=versions(),
    )


class _Dims:
    """The dynamic dimensions of one procedure: their names, bounds and values."""

    def __init__(self, procedure: Procedure) -> None:
        self._procedure = procedure
        self._names: dict[Value, str] = {}
        self.table: dict[str, Dim] = {}
        self._proxies = procedure.proxies()

    def input(self, index: int, path: str) -> Leaf:
        """Return the leaf of one argument."""
        leaf = self._procedure.leaves[index]
        if isinstance(leaf, AbstractTensor):
            shape = tuple(
                size if is_static(size) else self._dim(leaf, axis, path)
                for axis, size in enumerate(leaf.size)
            )
            for axis, value in self._proxies[index].known_dim_values().items():
                self._names.setdefault(value, str(shape[axis]))
            return TensorSpec(dtype_row(leaf.dtype, path), shape)
        if isinstance(leaf, AbstractSize):
            low, optimal, high = leaf.bounds
            return ScalarSpec("int", self._enter(Dim(path, low, high, optimal)))
        if isinstance(leaf, AbstractScalar):
            return ScalarSpec(_kind(str(leaf.get_ir_type(self._procedure.trace.module_builder))))
        return ConstantSpec(leaf if _is_json(leaf) else repr(leaf))

    def _dim(self, leaf: AbstractTensor, axis: int, path: str) -> str:
        entry = leaf.size[axis]
        if isinstance(entry, NamedDimension):
            dim = Dim(entry.name, entry.min, entry.max, entry.opt)
        else:
            dim = Dim(entry if isinstance(entry, str) else f"{path}_dim{axis}")
        return self._enter(dim)

    def _enter(self, dim: Dim) -> str:
        known = self.table.setdefault(dim.name, dim)
        if known != dim:
            raise ExportError(
                f"{self._procedure.decl.name}(): dimension {dim.name!r} has bounds {known.bounds} "
                f"in one place and {dim.bounds} in another; one name has one range"
            )
        return dim.name

    def result(self, leaf: Any) -> Leaf:
        """Return the leaf of one result."""
        if isinstance(leaf, IrTensor):
            stated = leaf.known_dim_values()
            shape = tuple(
                self._names.get(stated[axis], UNKNOWN) if axis in stated else size
                for axis, size in enumerate(leaf.type_shape)
            )
            shape = tuple(UNKNOWN if is_static(s) and s < 0 else s for s in shape)
            return TensorSpec(dtype_row(leaf.dtype, "a result"), shape)
        if isinstance(leaf, IrScalar):
            return ScalarSpec(_kind(leaf.kind))
        return ConstantSpec(leaf)


def _kind(kind: str) -> str:
    if kind == "i1":
        return "bool"
    return "float" if is_float(kind) else "int"


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))
