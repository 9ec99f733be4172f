"""Signatures of captured programs, from their arguments and graphs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument

from pelton.runtime.call import pytrees
from pelton.runtime.call.signature import (
    ConstantSpec,
    Leaf,
    Parameter,
    ScalarSpec,
    Signature,
    TensorSpec,
)
from pelton.runtime.call.sizes import Dim

from ..ir.elements import dtype_row
from ..spec.errors import DynamicShapeError, ExportError
from ..spec.locations import warn_user
from ..spec.versions import versions
from .arguments import InputLeaf, shift
from .dynamic_shapes import Axis, size_of, symbols_of
from .guards import (
    GuardOrigin,
    constraints_of,
    constraints_with_origins,
    origin_of_fixed_size,
    refuse_narrowed_range,
)
from .program import Program
from .trace import Capture


def signature_of_capture(captured: Capture, program: Program, name: str) -> Signature:
    """Return the signature of a program that `capture` traced.

    Args:
        captured: The trace, with its arguments and the structure of its result.
        program: The same program with its inputs and results, such as `normalize` returns.
        name: The function's name.

    Raises:
        DynamicShapeError: A size that was asked to be dynamic was fixed, or its range narrowed.
    """
    leaves = captured.arguments.inputs
    requested = {leaf.index: leaf for leaf in leaves}
    dims = _Dims(program.range_constraints, captured.program)
    for leaf, node in zip(leaves, program.inputs, strict=True):
        dims.add_input(leaf, node.meta["val"])
    inputs: list[Leaf] = []
    constants = captured.arguments.constants()
    nodes = iter(program.inputs)
    for index in range(len(captured.arguments.leaves)):
        if index in requested:
            inputs.append(dims.leaf(next(nodes).meta["val"], requested[index].path))
        else:
            inputs.append(constants[index])
    found = constraints_with_origins(captured.program, dims.names, oblivious=captured.oblivious)
    refuse_narrowed_range(found, dims.asked())
    outputs = iter(program.outputs)
    results = [
        constant if constant is not None else dims.result(next(outputs))
        for constant in captured.results
    ]
    return Signature(
        name=name,
        parameters=captured.arguments.parameters,
        inputs=tuple(inputs),
        result_tree=captured.result_tree,
        results=tuple(results),
        dims=dims.table(),
        location=captured.location,
        producer=versions(),
        constraints=tuple(constraint for constraint, _ in found),
    )


def with_constraints_of(
    signature: Signature, exported: ExportedProgram, oblivious: bool
) -> Signature:
    """Return a signature with the constraints on sizes that decomposing its program added.

    Args:
        signature: The signature, as it was when the program was traced.
        exported: The program, after `legalize_program`.
        oblivious: Whether it was traced without regard to sizes of 0 and 1.

    Raises:
        DynamicShapeError: One excludes an end of a range that was asked for.
    """
    names = {dim.symbol: dim.name for dim in signature.dims}
    found = constraints_with_origins(exported, names, oblivious=oblivious)
    asked = {dim.name: (dim.min, dim.max) for dim in signature.dims if dim.opt is not None}
    refuse_narrowed_range(found, asked)
    new = tuple(item for item, _ in found if item not in signature.constraints)
    return dataclasses.replace(signature, constraints=(*signature.constraints, *new))


def signature_of_program(
    exported: ExportedProgram, program: Program, name: str, *, guarded: bool = False
) -> Signature:
    """Return the signature of an `ExportedProgram` that torch.export made elsewhere.

    Args:
        exported: The program as it came.
        program: The same, normalised.
        name: The function's name.
        guarded: Whether the caller checks its guards, so that the signature need not state them.

    Raises:
        ExportError: Its inputs or results are of a structure that a signature cannot hold.
    """
    call = exported.module_call_graph[0].signature
    if call is None:
        raise ExportError("the ExportedProgram states no call signature; export it again")
    count = call.in_spec.num_leaves
    args, kwargs = call.in_spec.unflatten(_Marks(count))
    names = list(getattr(call, "forward_arg_names", None) or ())
    parameters = _program_parameters(args, kwargs, names)
    paths: dict[int, str] = {}
    for parameter in parameters:
        paths.update(pytrees.leaf_paths(parameter.tree, parameter.name))
    dims = _Dims(program.range_constraints, exported)
    nodes = iter(program.inputs)  # in order: decomposing may rename them
    values: list[Any] = [
        spec.arg.value if isinstance(spec.arg, ConstantArgument) else next(nodes)
        for spec in exported.graph_signature.input_specs
        if spec.kind is torch.export.graph_signature.InputKind.USER_INPUT
    ]
    for index, value in enumerate(values):
        if isinstance(value, torch.fx.Node):
            dims.add_input(InputLeaf(index, paths[index], 0), value.meta["val"])
    inputs = tuple(
        dims.leaf(value.meta["val"], paths[index])
        if isinstance(value, torch.fx.Node)
        else ConstantSpec(value)
        for index, value in enumerate(values)
    )
    result_tree, order = _tree_of(call.out_spec.unflatten(_Marks(call.out_spec.num_leaves)))
    results = tuple(dims.result(program.outputs[index]) for index in order)
    return Signature(
        name=name,
        parameters=tuple(parameters),
        inputs=inputs,
        result_tree=result_tree,
        results=results,
        dims=dims.table(),
        producer=versions(),
        constraints=() if guarded else constraints_of(exported, dims.names, oblivious=False),
    )


class _Mark(int):
    """A leaf's index, which no container takes for a value of its own."""


class _Marks(list[_Mark]):
    def __init__(self, count: int) -> None:
        super().__init__(_Mark(index) for index in range(count))


def _tree_of(value: Any) -> tuple[pytrees.Tree, list[int]]:
    """Return the tree of a structure of marks, and the index that each of its leaves marks."""
    tree, leaves = pytrees.describe(value, lambda item: isinstance(item, _Mark))
    return tree, [int(leaf) for leaf in leaves]


def _program_parameters(
    args: Iterable[Any], kwargs: Mapping[str, Any], names: list[str]
) -> list[Parameter]:
    args = list(args)
    while len(names) < len(args):
        names.append(f"arg{len(names)}")
    parameters = []
    offset = 0
    for kind, pairs in (
        ("POSITIONAL_OR_KEYWORD", list(zip(names, args, strict=False))),
        ("KEYWORD_ONLY", list(kwargs.items())),
    ):
        for name, value in pairs:
            tree, leaves = _tree_of(value)
            parameters.append(Parameter(name, kind, shift(tree, offset)))
            offset += len(leaves)
    return parameters


@dataclass
class _Symbol:
    """A symbol of a program: its name, and the axis of `dynamic_shapes` that it stands for."""

    name: str
    named_by_user: bool
    asked: Axis | None


class _Dims:
    """Names the symbols of a program: as the user did, else after the argument they come from."""

    def __init__(self, ranges: Mapping[Any, Any], exported: ExportedProgram) -> None:
        self._exported = exported
        self._ranges = {str(symbol): bounds for symbol, bounds in ranges.items()}
        self._positive = {str(symbol) for symbol in ranges if symbol.is_positive}
        self._symbols: dict[str, _Symbol] = {}

    @property
    def names(self) -> dict[str, str]:
        """The dimension names by symbol."""
        return {symbol: found.name for symbol, found in self._symbols.items()}

    def asked(self) -> dict[str, tuple[int | None, int | None]]:
        """Return the smallest and the largest size that was asked for, by dimension name."""
        return {
            found.name: (found.asked.min, found.asked.max)
            for found in self._symbols.values()
            if found.asked is not None and found.asked.root is None
        }

    def add_input(self, leaf: InputLeaf, value: Any) -> None:
        """Name the symbols of one input's sizes.

        Raises:
            DynamicShapeError: A size that was asked to be dynamic is fixed, or two names are one.
        """
        sizes = enumerate(value.shape) if isinstance(value, torch.Tensor) else [(-1, value)]
        for axis, size in sizes:
            asked = leaf.axes.get(axis)
            where = leaf.path if axis < 0 else f"{leaf.path}: dimension {axis}"
            symbols = symbols_of(size) if isinstance(size, torch.SymInt) else set()
            if asked is not None and not symbols:
                origin = origin_of_fixed_size(self._exported, int(size))
                _say_fixed(asked, f"argument {where}", size, origin)
            for symbol in symbols:
                default = leaf.path if axis < 0 else f"{leaf.path}_dim{axis}"
                self._name(symbol, asked, default, f"argument {where}")

    def _name(self, symbol: str, asked: Axis | None, default: str, where: str) -> None:
        wanted = (asked.name or asked.root) if asked is not None else None
        known = self._symbols.get(symbol)
        if known is None or (wanted and not known.named_by_user):
            self._symbols[symbol] = _Symbol(wanted or default, bool(wanted), asked)
        elif wanted and known.name != wanted:
            raise DynamicShapeError(
                f"{where} ({wanted!r}) must equal {known.name!r} for this program; "
                "give both one name"
            )

    def leaf(self, value: Any, path: str) -> Leaf:
        """Return the leaf of an input or result from its traced value."""
        if isinstance(value, torch.Tensor):
            shape = tuple(size_of(size, self.names) for size in value.shape)
            return TensorSpec(dtype_row(value.dtype, path), shape)
        if isinstance(value, (torch.SymInt, int)) and not isinstance(value, bool):
            size = size_of(value, self.names) if symbols_of(value) else None
            return ScalarSpec("int", size if isinstance(size, str) and size != "?" else None)
        return ScalarSpec("bool" if isinstance(value, (bool, torch.SymBool)) else "float")

    def result(self, output: torch.fx.Node | ConstantArgument) -> Leaf:
        """Return the leaf of a result."""
        if isinstance(output, ConstantArgument):
            return ConstantSpec(output.value)
        return self.leaf(output.meta["val"], "a result")

    def table(self) -> tuple[Dim, ...]:
        """Return the named dimensions with their bounds; one for each name."""
        found: dict[str, Dim] = {}
        for symbol, named in self._symbols.items():
            low, high = self._bounds(symbol, named.asked)
            opt = named.asked.opt if named.asked is not None else None
            found.setdefault(named.name, Dim(named.name, low, high, opt, symbol))
        return tuple(found.values())

    def _bounds(self, symbol: str, asked: Axis | None) -> tuple[int, int | None]:
        bounds = self._ranges.get(symbol)
        if bounds is None:
            return 0, None
        low = int(bounds.lower) if bounds.lower.is_finite and bounds.lower > 0 else 0
        if low == 2 and asked is not None and asked.min is not None:
            low = asked.min  # torch traces no size below 2 and then states that as a bound
        if low == 0 and symbol in self._positive:
            low = 1  # torch simplified the sizes of the program for that
        high = bounds.upper
        return low, int(high) if getattr(high, "is_Integer", False) and high < 2**62 else None


def _say_fixed(asked: Axis, where: str, size: Any, origin: GuardOrigin) -> None:
    """Refuse, or for `Dim.AUTO` say, that a size which was asked to be dynamic is fixed.

    Raises:
        DynamicShapeError: It must not be.
    """
    if asked.strict:
        raise DynamicShapeError(
            f"{where} was asked to be dynamic, but {origin.operator or 'the program'} fixes it to "
            f"{size}; give the number {size} as its size, or write the operation in another way",
            location=origin.location,
        )
    warn_user(f"{where} (Dim.AUTO) is fixed to {size} by the program")
