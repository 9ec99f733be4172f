"""Options of a verification: sizes, values and tolerances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pelton.runtime.call.dtypes import DTYPES, DType, dtype_of
from pelton.runtime.files import StrPath

from ..spec.errors import ExportError

RELATIVE_TOLERANCES: dict[str, float] = {
    "float8_e4m3fn": 0.25,
    "float8_e5m2": 0.5,
    "float8_e4m3fnuz": 0.25,
    "float8_e5m2fnuz": 0.5,
    "float16": 1e-2,
    "bfloat16": 3e-2,
    "float32": 1e-3,
    "float64": 1e-6,
    "complex64": 1e-3,
    "complex128": 1e-6,
}
"""How far a result may be off, as a part of its own size and of the typical size (the root of the
mean square) of the tensor that it is in. Results of other element types must be equal."""

MEMORY_LIMIT_BYTES = 256 << 20
"""Sizes at which the inputs take more than this are left out, and the report says so."""


@dataclass(frozen=True)
class Numerics:
    """What `verify` and `check` try.

    Attributes:
        seeds: One call with random inputs for each, at each size.
        special_values: Try zeros, negative zeros, ones, tiny and large numbers as well.
        nonfinite: Try infinities and NaN among the inputs as well. Compilers may treat them unlike
            PyTorch on purpose, in comparisons and maxima for instance.
        integers: `(low, high)`, inclusive, for integer inputs by path, such as `tokens`. Others
            are found: the rows of the table that they index, else the widest range of a few that
            PyTorch accepts.
        tolerances: Relative tolerances by element type, in place of `RELATIVE_TOLERANCES`.
        sizes: More sizes to try: the values of dimensions by name.
        memory_limit_bytes: Sizes whose inputs take more are left out.
        bisect: On a failure, find the first operator whose value differs: a folder for its
            reproducer, or True for a new temporary one.

    Raises:
        ExportError: A value is impossible.

    Example:
        >>> Numerics(seeds=[1], integers={"tokens": (0, 31)}).integers["tokens"]
        (0, 31)
    """

    seeds: Sequence[int] = (0, 1, 2)
    special_values: bool = True
    nonfinite: bool = False
    integers: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    tolerances: Mapping[str, float] = field(default_factory=dict)
    sizes: Sequence[Mapping[str, int]] = ()
    memory_limit_bytes: int = MEMORY_LIMIT_BYTES
    bisect: StrPath | bool = False

    def __post_init__(self) -> None:
        if not self.seeds:
            raise ExportError("seeds is empty; give at least one number")
        for path, bounds in self.integers.items():
            if len(bounds) != 2 or bounds[0] > bounds[1]:
                raise ExportError(f"integers[{path!r}] must be (low, high), got {bounds!r}")
        given = {_name_of(key): value for key, value in self.tolerances.items()}
        for name, value in given.items():
            if not 0 <= value < math.inf:
                raise ExportError(f"tolerances[{name!r}] must be 0 or more, got {value!r}")
        object.__setattr__(self, "tolerances", given)

    @staticmethod
    def of(given: bool | Numerics) -> Numerics | None:
        """Return the options that `numerics=` or `check=` stands for; None: not asked for.

        Raises:
            ExportError: It is something else.
        """
        if isinstance(given, Numerics):
            return given
        if isinstance(given, bool):
            return Numerics() if given else None
        raise ExportError(f"expected True, False or aot.Numerics(...), got {given!r}")

    def tolerance(self, dtype: DType) -> float:
        """Return the relative tolerance of an element type; 0: must be equal."""
        return self.tolerances.get(dtype.name, RELATIVE_TOLERANCES.get(dtype.name, 0.0))


def _name_of(key: object) -> str:
    dtype = DTYPES.get(key) if isinstance(key, str) else dtype_of(key)
    if dtype is None:
        raise ExportError(f"tolerances: {key!r} is no element type; known: {', '.join(DTYPES)}")
    return dtype.name
