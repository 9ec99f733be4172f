"""Input infos: element types, bounds of shapes and values, and dimension names of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from . import sizes
from .dtypes import DType
from .signature import ConstantSpec, ScalarSpec, Signature, TensorSpec
from .sizes import Size

Bound = int | None
"""A bound of a size; None where there is no largest or no optimal size."""


@dataclass(frozen=True)
class ShapeBounds:
    """The smallest, the optimal and the largest shape of an input."""

    min: tuple[Bound, ...]
    opt: tuple[Bound, ...]
    max: tuple[Bound, ...]


@dataclass(frozen=True)
class InputInfo:
    """A tensor input.

    Attributes:
        shape_bounds: The smallest, the optimal and the largest shape.
        dtype: The element type; `dtype.name` is torch's and numpy's word for it.
        dimension_names: The name of each dynamic dimension that has one, by position; dimensions
            of one name have one size in every call.

    Example:
        >>> from pelton.runtime.call.dtypes import DTYPES
        >>> info = InputInfo(ShapeBounds((1,), (2,), (4,)), DTYPES["float32"], {0: "batch"})
        >>> info.shape_bounds.max
        (4,)
    """

    shape_bounds: ShapeBounds
    dtype: DType
    dimension_names: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DimensionInputInfo:
    """A Python integer input.

    Attributes:
        value_bounds: Its smallest, optimal and largest value.
        name: The name of the dimension that it is, or None.
    """

    value_bounds: tuple[Bound, Bound, Bound]
    name: str | None = None


@dataclass(frozen=True)
class ScalarInputInfo:
    """Another Python number input; `kind` is `float` or `bool`."""

    kind: str


Info = InputInfo | DimensionInputInfo | ScalarInputInfo
"""The info of one input."""


def input_infos(signature: Signature) -> dict[str, Info]:
    """Return the info of each input of a function by its path; constants are not inputs.

    Example:
        >>> from pelton.runtime.call.dtypes import DTYPES
        >>> from pelton.runtime.call.signature import Parameter
        >>> x = TensorSpec(DTYPES["float32"], (["*", 2, "n"], 3))
        >>> dims = (sizes.Dim("n", 1, 8, 4),)
        >>> main = Signature("main", (Parameter("x", "POSITIONAL_ONLY", 0),), (x,), dims=dims)
        >>> input_infos(main)["x"].shape_bounds
        ShapeBounds(min=(2, 3), opt=(8, 3), max=(16, 3))
    """
    bounds = _Bounds(signature)
    found: dict[str, Info] = {}
    for path, leaf in signature.named_inputs():
        if isinstance(leaf, TensorSpec):
            triples = [bounds.of(size) for size in leaf.shape]
            low, optimal, high = (tuple(triple[i] for triple in triples) for i in range(3))
            names = {axis: size for axis, size in enumerate(leaf.shape) if isinstance(size, str)}
            found[path] = InputInfo(ShapeBounds(low, optimal, high), leaf.dtype, names)
        elif isinstance(leaf, ScalarSpec) and leaf.kind == "int":
            name = leaf.size if isinstance(leaf.size, str) else None
            found[path] = DimensionInputInfo(bounds.of(leaf.size), name)
        elif isinstance(leaf, ScalarSpec):
            found[path] = ScalarInputInfo(leaf.kind)
        else:
            assert isinstance(leaf, ConstantSpec)
    return found


class _Bounds:
    """The bounds of sizes, computed from the bounds of dimensions."""

    def __init__(self, signature: Signature) -> None:
        dims = signature.dims
        self._low = {dim.name: dim.min for dim in dims}
        self._optimal = {dim.name: dim.opt for dim in dims if dim.opt is not None}
        self._high = {dim.name: dim.max for dim in dims if dim.max is not None}

    def of(self, size: Size | None) -> tuple[Bound, Bound, Bound]:
        """Return smallest, optimal and largest value of a size, which may be decreasing."""
        if size is None:
            return None, None, None
        ends = sizes.evaluate(size, self._low), sizes.evaluate(size, self._high)
        optimal = sizes.evaluate(size, self._optimal)
        if None in ends:
            return ends[0], optimal, ends[1]
        return min(ends), optimal, max(ends)  # type: ignore[type-var]  # neither is None
