"""Arguments of an export, flattened: inputs, constants and dynamic sizes."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from pelton.runtime.call import pytrees
from pelton.runtime.call.signature import ConstantSpec, Parameter

from ..ir.elements import check_tensor, dtype_row
from ..spec.errors import DynamicShapeError, ExportError, SignatureError
from ..spec.inputs import DimensionInputInfo, InputInfo
from ..spec.meta_tensors import has_data
from .dynamic_shapes import Axis, DimTable, axes_of_info, axes_of_tensor, match_tree


@dataclass(frozen=True)
class TracedInput:
    """An input that a program under construction passes to a function that it calls.

    Attributes:
        value: What stands for it in that program.
        dtype: The element type of a tensor; None: an integer.
        shape: The sizes of a tensor, None where they are dynamic.
        size: The example for a dynamic size, or for an integer.
    """

    value: Any
    dtype: torch.dtype | None = None
    shape: tuple[int | None, ...] = ()
    size: int = 0


_LEAF_TYPES = (torch.Tensor, InputInfo, DimensionInputInfo, TracedInput)


@dataclass
class InputLeaf:
    """One leaf that is an input at run time.

    Attributes:
        index: Its place among all leaves.
        path: As the user would write it, such as `cache['keys'][0]`.
        example: The tensor or integer to trace with.
        axes: The dynamic axes of a tensor; `{-1: axis}` for an integer.
    """

    index: int
    path: str
    example: torch.Tensor | int
    axes: dict[int, Axis] = field(default_factory=dict)

    @property
    def torch_spec(self) -> Any:
        """What torch.export takes as this leaf's entry of `dynamic_shapes`."""
        if isinstance(self.example, int):
            return self.axes[-1].torch
        return {axis: spec.torch for axis, spec in self.axes.items()} or None

    def larger_example(self) -> torch.Tensor | int:
        """Return an example whose dynamic sizes are larger than 1, as far as bounds allow."""
        if isinstance(self.example, int):
            return self.example
        shape = list(self.example.shape)
        for axis, spec in self.axes.items():
            shape[axis] = spec.example(3)
        if shape == list(self.example.shape):
            return self.example
        return torch.zeros(shape, dtype=self.example.dtype, device=self.example.device)


@dataclass
class Arguments:
    """The flattened arguments of an export.

    Attributes:
        parameters: The function's parameters with the structure of their arguments.
        leaves: All leaves: the values of constants, and the given tensor or spec of each input.
        inputs: Those leaves that are inputs at run time, in order.
        ties: Leaves that are the same tensor as an earlier one, by index.
    """

    parameters: tuple[Parameter, ...]
    leaves: list[Any]
    inputs: list[InputLeaf]
    ties: dict[int, int] = field(default_factory=dict)

    def constants(self) -> dict[int, ConstantSpec]:
        """Return the leaves that are fixed, by index."""
        inputs = {leaf.index for leaf in self.inputs}
        return {
            index: ConstantSpec(value if _is_json(value) else repr(value))
            for index, value in enumerate(self.leaves)
            if index not in inputs
        }

    def rebuild(self, values: Sequence[Any]) -> dict[str, Any]:
        """Return the value of each parameter, by name, with `values` for the inputs."""
        leaves = list(self.leaves)
        for leaf, value in zip(self.inputs, values, strict=True):
            leaves[leaf.index] = value
        for index, first in self.ties.items():
            leaves[index] = leaves[first]
        return {p.name: pytrees.unflatten(p.tree, leaves) for p in self.parameters}

    def call_form(self, by_name: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and keyword arguments of a call with these values."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter in self.parameters:
            value = by_name[parameter.name]
            if parameter.kind == "VAR_POSITIONAL":
                args.extend(value)
            elif parameter.kind == "VAR_KEYWORD":
                kwargs.update(value)
            elif parameter.kind == "KEYWORD_ONLY":
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return args, kwargs


def flatten_arguments(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any,
    *,
    only_specs: bool = False,
) -> Arguments:
    """Bind arguments to a function's parameters and sort them into inputs and constants.

    Args:
        function: The function (or bound `forward`) that is exported.
        args: Positional arguments: tensors, specs, containers of them, or constants.
        kwargs: Keyword arguments of the same kinds.
        dynamic_shapes: As for `torch.export.export`; names and `NamedDimension` also work.
        only_specs: Make only specs inputs: tensors are constants like other values.

    Raises:
        ExportError: The arguments do not fit the parameters, or one cannot be an input.
        DynamicShapeError: `dynamic_shapes` does not fit the arguments.
    """
    signature = _signature_of(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(function, "__qualname__", repr(function))
        raise ExportError(
            f"{name}{signature} cannot be called with these arguments: {error}"
        ) from None
    bound.apply_defaults()
    dims = DimTable()
    leaves: list[Any] = []
    parameters = []
    for name, value in bound.arguments.items():
        parameters.append(
            Parameter(name, signature.parameters[name].kind.name, _describe(name, value, leaves))
        )
    entries = _entries_by_leaf(parameters, dynamic_shapes)
    paths = _paths(parameters)
    inputs = []
    for index, value in enumerate(leaves):
        if only_specs and isinstance(value, torch.Tensor):
            continue
        leaf = _input_leaf(index, paths[index], value, entries.get(index), dims)
        if leaf is not None:
            inputs.append(leaf)
    return Arguments(tuple(parameters), leaves, inputs)


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        # Builtins such as torch.add state no signature: any arguments are bound.
        return inspect.Signature(
            [
                inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
                inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
            ]
        )


def _describe(name: str, value: Any, leaves: list[Any]) -> pytrees.Tree:
    try:
        tree, found = pytrees.describe(value, lambda item: isinstance(item, _LEAF_TYPES))
    except SignatureError as error:
        raise ExportError(f"argument {name}: {error}") from None
    offset = len(leaves)
    leaves.extend(found)
    return shift(tree, offset)


def shift(tree: pytrees.Tree, offset: int) -> pytrees.Tree:
    """Return a tree with all leaf indices raised by `offset`.

    Example:
        >>> shift(["list", [0, None, 1]], 5)
        ['list', [5, None, 6]]
    """
    if tree is None:
        return None
    if isinstance(tree, int):
        return tree + offset
    kind, *name, items = tree
    if kind in ("list", "tuple"):
        return [kind, *name, [shift(child, offset) for child in items]]
    return [kind, *name, [[key, shift(child, offset)] for key, child in items]]


def _paths(parameters: Sequence[Parameter]) -> dict[int, str]:
    paths: dict[int, str] = {}
    for parameter in parameters:
        paths.update(pytrees.leaf_paths(parameter.tree, parameter.name))
    return paths


def _entries_by_leaf(parameters: Sequence[Parameter], dynamic_shapes: Any) -> dict[int, Any]:
    """Return each leaf's entry of `dynamic_shapes`, by leaf index."""
    if dynamic_shapes is None:
        return {}
    entries: dict[int, Any] = {}
    names = [parameter.name for parameter in parameters]
    if isinstance(dynamic_shapes, Mapping):
        by_name = dict(dynamic_shapes)
        for parameter in parameters:  # **kwargs are named at the top level too
            if parameter.kind == "VAR_KEYWORD" and parameter.name not in by_name:
                inner = {key for key, _ in parameter.tree[-1]}
                by_name[parameter.name] = {k: by_name.pop(k, None) for k in inner}
        unknown = [name for name in by_name if name not in names]
        if unknown:
            raise DynamicShapeError(
                f"dynamic_shapes names {', '.join(map(repr, unknown))}; "
                f"the parameters are {', '.join(names)}"
            )
    elif isinstance(dynamic_shapes, (list, tuple)):
        given = list(dynamic_shapes)
        variadic = next((i for i, p in enumerate(parameters) if p.kind == "VAR_POSITIONAL"), None)
        if (
            variadic is not None
            and len(given) > variadic
            and not _is_nested(given, variadic, parameters)
        ):
            given = [*given[:variadic], given[variadic:]]
        if len(given) > len(names):
            raise DynamicShapeError(
                f"dynamic_shapes has {len(given)} entries for {len(names)} parameters"
            )
        by_name = dict(zip(names, given, strict=False))
    else:
        raise DynamicShapeError(
            "dynamic_shapes must be a dict by parameter name or a sequence in their order, "
            f"got {dynamic_shapes!r}"
        )
    for parameter in parameters:
        match_tree(parameter.tree, by_name.get(parameter.name), entries.__setitem__, parameter.name)
    return entries


def _is_nested(given: list[Any], variadic: int, parameters: Sequence[Parameter]) -> bool:
    """Return whether `given` has one nested entry for `*args` (torch.export's form)."""
    entry = given[variadic]
    count = len(parameters[variadic].tree[-1])
    return len(given) == variadic + 1 and isinstance(entry, (list, tuple)) and len(entry) == count


def _input_leaf(index: int, path: str, value: Any, entry: Any, dims: DimTable) -> InputLeaf | None:
    where = f"argument {path}"
    if isinstance(value, torch.Tensor):
        check_tensor(value, where)
        axes = axes_of_tensor(entry, value.dim(), dims, where)
        if not has_data(value):
            example = torch.zeros(value.shape, dtype=value.dtype)
            return InputLeaf(index, path, example, axes)
        # A copy of its own: the same tensor given twice is two inputs, not one.
        return InputLeaf(index, path, value.detach().clone(), axes)
    if isinstance(value, TracedInput):
        return _traced_leaf(index, path, value, entry, dims)
    if isinstance(value, InputInfo):
        dtype_row(value.dtype, where)
        axes = axes_of_info(value, dims)
        axes.update(axes_of_tensor(entry, len(value.shape), dims, where))
        example = torch.zeros(value.shape_bounds.opt, dtype=value.dtype)
        return InputLeaf(index, path, example, axes)
    if isinstance(value, DimensionInputInfo):
        low, opt, high = value.value_bounds
        hint = torch.export.Dim.DYNAMIC(min=low, max=high)
        return InputLeaf(index, path, opt, {-1: Axis(None, low, high, opt, hint)})
    if isinstance(value, int) and not isinstance(value, bool) and entry is not None:
        axis = dims.from_user(entry, where)
        if axis is not None:
            hint = torch.export.Dim.DYNAMIC(min=axis.min, max=axis.max)
            return InputLeaf(index, path, value, {-1: dataclasses.replace(axis, torch=hint)})
        return None
    if entry is not None:
        raise DynamicShapeError(f"{where}: dynamic_shapes gives {entry!r} for a constant {value!r}")
    return None


def _traced_leaf(
    index: int, path: str, value: TracedInput, entry: Any, dims: DimTable
) -> InputLeaf:
    if value.dtype is None:
        hint = torch.export.Dim.DYNAMIC
        return InputLeaf(index, path, value.size, {-1: Axis(None, None, None, None, hint)})
    where = f"argument {path}"
    free = Axis(None, None, None, None, torch.export.Dim.AUTO, strict=False)
    axes = {axis: free for axis, size in enumerate(value.shape) if size is None}
    axes.update(axes_of_tensor(entry, len(value.shape), dims, where))
    shape = [
        max(value.size, axes[axis].min or 0) if size is None else size
        for axis, size in enumerate(value.shape)
    ]
    # Never read or written: torch.export only looks at its type.
    return InputLeaf(index, path, torch.empty(shape, dtype=value.dtype), axes)


def _is_json(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))
