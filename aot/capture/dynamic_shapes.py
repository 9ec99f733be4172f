"""Dynamic dimensions: the user's spelling, torch.export's dims, and sizes of the signature."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.export import Dim as TorchDim

from pelton.runtime.call import sizes
from pelton.runtime.call.pytrees import Tree

from ..spec.errors import DynamicShapeError
from ..spec.inputs import InputInfo, NamedDimension

UNKNOWN = "?"
"""The size of a result that is known only when it is computed."""


@dataclass(frozen=True)
class Axis:
    """A size that was asked to be dynamic.

    Attributes:
        name: The dimension's name; None where the user gave none.
        min: Smallest size; None: as small as the program allows.
        max: Largest size; None: no bound.
        opt: The size to optimise for; None: not stated.
        torch: What torch.export takes for it: a `Dim`, a derived one, or a hint.
        strict: Whether it must not be fixed by the program.
        root: For a derived size: the name of the dimension that it is derived from.
        linear: Slope and offset of a derived size: it is `slope * root + offset`.
    """

    name: str | None
    min: int | None
    max: int | None
    opt: int | None
    torch: Any
    strict: bool = True
    root: str | None = None
    linear: tuple[int, int] = (1, 0)

    def example(self, base: int) -> int:
        """Return the size of an example of base size `base`, clamped to the bounds."""
        low, high = self.min or 0, self.max if self.max is not None else base
        slope, offset = self.linear
        return slope * min(max(base, low), max(high, low)) + offset


class DimTable:
    """One torch `Dim` for each name, so that a name means one size throughout a program."""

    def __init__(self) -> None:
        self._dims: dict[str, tuple[tuple[int | None, int | None], Any]] = {}

    def named(self, name: str, low: int | None, high: int | None, opt: int | None) -> Axis:
        """Return the axis of the dimension called `name`.

        Args:
            name: The dimension's name.
            low: Smallest size; None: no bound.
            high: Largest size; None: no bound.
            opt: The size to optimise for; None: not stated.

        Raises:
            DynamicShapeError: The name was used before with other bounds, or bounds are reversed.
        """
        if low is not None and high is not None and low > high:
            raise DynamicShapeError(f"dimension {name!r} has bounds {low}..{high}: min above max")
        if low is not None and low == high:
            raise DynamicShapeError(
                f"dimension {name!r} has bounds {low}..{high}: a single size is not dynamic; "
                f"give the number {low} instead"
            )
        bounds = (low, high)
        known = self._dims.setdefault(name, (bounds, _torch_dim(name, low, high)))
        if known[0] != bounds:
            raise DynamicShapeError(
                f"dimension {name!r} has bounds {range_text(known[0])} in one place and "
                f"{range_text(bounds)} in another; one name has one range"
            )
        return Axis(name, low, high, opt, known[1])

    def from_user(self, given: Any, where: str) -> Axis | None:
        """Return the axis of one entry of `dynamic_shapes`; None where it is static.

        Raises:
            DynamicShapeError: It is nothing that describes a size.
        """
        if given is None or given is TorchDim.STATIC or isinstance(given, int):
            return None
        if isinstance(given, str):
            return self.named(given, None, None, None)
        if isinstance(given, NamedDimension):
            return self.named(given.name, given.min, given.max, given.opt)
        if isinstance(given, TorchDim):
            root, derive = getattr(given, "root", None), getattr(given, "fn", None)
            if root is not None and derive is not None:  # derived, such as 2*batch
                shared = self.named(root.__name__, _finite(root.min), _finite(root.max), None)
                offset = int(derive(0))
                slope = int(derive(1)) - offset
                derived = slope * shared.torch if slope != 1 else shared.torch
                derived = derived + offset if offset > 0 else derived
                derived = derived - -offset if offset < 0 else derived
                return dataclasses.replace(
                    shared, name=None, torch=derived, root=shared.name, linear=(slope, offset)
                )
            return self.named(given.__name__, _finite(given.min), _finite(given.max), None)
        hint = getattr(given, "type", None)
        kind = getattr(hint, "name", None)
        if kind in ("AUTO", "DYNAMIC"):
            low, high = getattr(given, "min", None), getattr(given, "max", None)
            return Axis(None, low, high, None, given, strict=kind == "DYNAMIC")
        raise DynamicShapeError(
            f"{where}: cannot read {given!r} as a size; use a Dim, its name, Dim.AUTO, "
            "Dim.DYNAMIC, a NamedDimension, a number, or None"
        )


def _torch_dim(name: str, low: int | None, high: int | None) -> Any:
    symbol = name if name.isidentifier() else re.sub(r"\W", "_", f"d_{name}")
    return TorchDim(symbol, min=low, max=high)


def _finite(bound: Any) -> int | None:
    """Return a bound of a torch `Dim`, or None where it stands for no bound."""
    return None if bound is None or bound in (0, float("inf")) or bound >= 2**62 else int(bound)


def range_text(bounds: tuple[int | None, int | None]) -> str:
    """Return a range as text; a side without a bound is left out.

    Example:
        >>> range_text((1, 8)), range_text((2, None))
        ('1..8', '2..')
    """
    low, high = bounds
    return f"{'' if low is None else low}..{'' if high is None else high}"


def axes_of_info(info: InputInfo, dims: DimTable) -> dict[int, Axis]:
    """Return the dynamic axes of an `InputInfo`, by position."""
    axes: dict[int, Axis] = {}
    for axis, size in enumerate(info.shape):
        if isinstance(size, NamedDimension) and size.min != size.max:
            axes[axis] = dims.named(size.name, size.min, size.max, size.opt)
        elif isinstance(size, tuple) and size[0] != size[2]:
            low, opt, high = size
            axes[axis] = Axis(None, low, high, opt, TorchDim.DYNAMIC(min=low, max=high))
    return axes


def axes_of_tensor(given: Any, rank: int, dims: DimTable, where: str) -> dict[int, Axis]:
    """Return the dynamic axes that one tensor's entry of `dynamic_shapes` asks for.

    Args:
        given: None, `{axis: size}`, or a sequence of sizes.
        rank: The tensor's number of dimensions.
        dims: The named dimensions so far.
        where: The argument, for messages.

    Raises:
        DynamicShapeError: An axis that is not there, or a size that cannot be read.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        pairs = list(given.items())
    elif isinstance(given, Sequence) and not isinstance(given, str):
        if len(given) != rank:
            raise DynamicShapeError(
                f"{where}: dynamic_shapes gives {len(given)} sizes for {rank} dimensions"
            )
        pairs = list(enumerate(given))
    else:
        raise DynamicShapeError(
            f"{where}: dynamic_shapes for a tensor is {{dimension: size}}, a sequence of sizes or "
            f"None, got {given!r}"
        )
    axes = {}
    for axis, size in pairs:
        if not isinstance(axis, int) or not -rank <= axis < rank:
            raise DynamicShapeError(f"{where}: there is no dimension {axis!r}; it has {rank}")
        found = dims.from_user(size, f"{where}: dimension {axis}")
        if found is not None:
            axes[axis % rank] = found
    return axes


def match_tree(tree: Tree, given: Any, place: Callable[[int, Any], None], where: str) -> None:
    """Hand each leaf of an argument's tree its entry of `dynamic_shapes`.

    Args:
        tree: The argument's structure.
        given: Its entry: None (all static), or the same structure with entries at the leaves.
        place: Takes the leaf's index and its entry.
        where: The argument, for messages.

    Raises:
        DynamicShapeError: The structures differ.
    """
    if given is None or tree is None:
        return
    if isinstance(tree, int):
        place(tree, given)
        return
    kind, *_, items = tree
    if kind in ("list", "tuple"):
        if not isinstance(given, (list, tuple)) or len(given) != len(items):
            raise DynamicShapeError(
                f"{where}: dynamic_shapes must be a {kind} of {len(items)} entries, got {given!r}"
            )
        for index, (child, entry) in enumerate(zip(items, given, strict=True)):
            match_tree(child, entry, place, f"{where}[{index}]")
        return
    keys = [key for key, _ in items]
    if kind == "namedtuple" and isinstance(given, (list, tuple)) and len(given) == len(keys):
        given = dict(zip(keys, given, strict=True))
    elif not isinstance(given, Mapping):
        if kind not in ("namedtuple", "dataclass") or not all(hasattr(given, key) for key in keys):
            raise DynamicShapeError(
                f"{where}: dynamic_shapes must give an entry by each of {keys!r}, got {given!r}"
            )
        given = {key: getattr(given, key) for key in keys}
    unknown = set(given) - set(keys)
    if unknown:
        raise DynamicShapeError(f"{where}: dynamic_shapes names unknown keys {sorted(unknown)!r}")
    for key, child in items:
        match_tree(child, given.get(key), place, f"{where}[{key!r}]")


def size_of(expression: Any, names: Mapping[str, str]) -> sizes.Size:
    """Return a torch size (int, SymInt or sympy expression) as a size of the signature.

    Args:
        expression: The size.
        names: Dimension names by symbol.

    Returns:
        The size, `UNKNOWN` where it depends on values or has no form in the signature.

    Example:
        >>> s0 = sympy.Symbol("s0", integer=True)
        >>> size_of(2 * s0, {"s0": "batch"})
        ['*', 2, 'batch']
    """
    if isinstance(expression, torch.SymInt):
        expression = expression.node.expr
    if isinstance(expression, (int, sympy.Integer)):
        return int(expression)
    if isinstance(expression, sympy.Symbol):
        return names.get(str(expression), UNKNOWN)
    operands = [size_of(argument, names) for argument in expression.args]
    if any(_unknown(operand) for operand in operands) or not operands:
        return UNKNOWN
    if isinstance(expression, sympy.Pow):
        return _power(operands)
    operator = _OPERATORS.get(type(expression).__name__)
    if operator is None:
        return UNKNOWN
    combined = operands[0]
    for operand in operands[1:]:
        combined = [operator, combined, operand]
    return combined


_OPERATORS = {
    "Add": "+",
    "Mul": "*",
    "FloorDiv": "//",
    "CleanDiv": "//",
    "IntTrueDiv": "//",
    "Mod": "%",
    "PythonMod": "%",
    "Max": "max",
    "Min": "min",
}


def _power(operands: list[sizes.Size]) -> sizes.Size:
    base, exponent = operands
    if not isinstance(exponent, int) or exponent < 1:
        return UNKNOWN
    product = base
    for _ in range(exponent - 1):
        product = ["*", product, base]
    return product


def _unknown(size: sizes.Size) -> bool:
    return UNKNOWN in sizes.names_in(size)


def symbols_of(size: Any) -> set[str]:
    """Return the names of the symbols in a torch size."""
    expression = size.node.expr if isinstance(size, torch.SymInt) else size
    return {str(symbol) for symbol in getattr(expression, "free_symbols", ())}
