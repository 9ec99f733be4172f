"""Argument binding: the arguments of a call as flat leaves, checked against its signature.

The check has two forms over the same precomputed facts: `fits` is quick and on the path of every
call; `explain` runs only where `fits` is False, and raises the error that names the cause.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple, NoReturn, TypeAlias

from ..errors import SignatureError
from . import pytrees, sizes
from .dtypes import dtype_of
from .signature import ConstantSpec, Leaf, ScalarSpec, Signature, TensorSpec

_REMEMBERED = 256
"""How many combinations of shapes and element types that fit a function caches."""


class Binder:
    """Turns the arguments of a call to one entry point into its checked input leaves.

    Args:
        signature: The entry point's signature.
    """

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.python = signature.python()
        self._paths = signature.input_paths()
        self._constants = {
            index: leaf.value
            for index, leaf in enumerate(signature.inputs)
            if isinstance(leaf, ConstantSpec)
        }
        self.runtime_inputs = tuple(
            index for index in range(len(signature.inputs)) if index not in self._constants
        )
        self._plain = self.runtime_inputs == tuple(range(len(signature.parameters))) and all(
            parameter.tree == index and "VAR" not in parameter.kind and "ONLY" not in parameter.kind
            for index, parameter in enumerate(signature.parameters)
        )
        self._bounds = {
            dim.name: (dim.min, math.inf if dim.max is None else dim.max) for dim in signature.dims
        }
        self._only_tensors = all(
            isinstance(signature.inputs[index], TensorSpec) for index in self.runtime_inputs
        )
        self._fitting: set[tuple[Any, ...]] = set()
        self._checks = tuple(
            _LeafCheck(index, signature.inputs[index]) for index in self.runtime_inputs
        )

    def leaves(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """Return the leaves of a call that are inputs at run time, in order.

        Raises:
            SignatureError: Wrong count, names or structure, or another value for a constant.
        """
        if self._plain and not kwargs and len(args) == len(self.runtime_inputs):
            return args
        try:
            bound = self.python.bind(*args, **kwargs)
        except TypeError as error:
            raise self._binding_error(args, error) from None
        bound.apply_defaults()
        leaves: list[Any] = [None] * len(self.signature.inputs)
        for parameter in self.signature.parameters:
            value = bound.arguments[parameter.name]
            try:
                pytrees.flatten(parameter.tree, value, leaves, parameter.name)
            except SignatureError as error:
                raise SignatureError(f"{self.signature.name}(): {error}") from None
        for index, constant in self._constants.items():
            if not _is_constant(leaves[index], constant):
                raise SignatureError(
                    f"{self._where(index)} was fixed to {constant!r} at export, "
                    f"got {leaves[index]!r}; export again with an input spec for it"
                )
        return [leaves[index] for index in self.runtime_inputs]

    def _binding_error(self, args: Sequence[Any], error: TypeError) -> SignatureError:
        positional = [p for p in self.python.parameters.values() if "POSITIONAL" in p.kind.name]
        extra = args[len(positional) :] if "too many positional" in str(error) else ()
        given = f" ({len(args)} given; extra: {', '.join(map(_describe, extra))})" if extra else ""
        return SignatureError(f"{self.signature.name}(): {error}{given}; expected {self.signature}")

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Tell whether the leaves have the types, ranks and sizes of the signature."""
        if not self._only_tensors:
            return self._check(leaves)
        try:
            # Calls repeat: a combination of shapes and element types is checked once.
            key = tuple([(leaf.shape, leaf.dtype) for leaf in leaves])
            if key in self._fitting:
                return True
        except (AttributeError, TypeError):
            return self._check(leaves)
        fitting = self._check(leaves)
        if fitting and len(self._fitting) < _REMEMBERED:
            self._fitting.add(key)
        return fitting

    def _check(self, leaves: Sequence[Any]) -> bool:
        values: dict[str, int] = {}
        expressions: list[tuple[sizes.Size, int]] = []
        for check, leaf in zip(self._checks, leaves, strict=True):
            if not check.fits(leaf, values, expressions):
                return False
        return not (values or expressions) or self._sizes_fit(values, expressions)

    def _sizes_fit(self, values: dict[str, int], expressions: list[tuple[sizes.Size, int]]) -> bool:
        if expressions and not _expressions_fit(values, expressions):
            return False
        for name, value in values.items():
            low, high = self._bounds[name]
            if value < low or value > high:
                return False
        if not all(constraint.holds(values) for constraint in self.signature.constraints):
            return False
        profiles = self.signature.profiles
        return not profiles or any(profile.contains(values) for profile in profiles)

    def explain(self, leaves: Sequence[Any]) -> NoReturn:
        """Raise the error for leaves that `fits` refused.

        Raises:
            SignatureError: Always.
        """
        origin: _Origin = {}
        later: list[tuple[_Place, sizes.Size, int]] = []
        for check, leaf in zip(self._checks, leaves, strict=True):
            path = self._paths[check.index]
            for axis, size, actual in check.explain(leaf, self._where(check.index)):
                place = _Place(self.signature.name, path, axis)
                if isinstance(size, str):
                    self._agree(origin, size, actual, place, f"{place} ({size!r}) is {actual}")
                else:
                    later.append((place, size, actual))
        for place, size, actual in later:
            self._explain_expression(origin, size, actual, place)
        self._explain_constraints(origin)
        self._explain_profiles(origin)
        raise AssertionError(f"{self.signature.name}: refused without a reason")

    def _explain_constraints(self, origin: _Origin) -> None:
        values = {name: value for name, (value, _) in origin.items()}
        for constraint in self.signature.constraints:
            if not constraint.holds(values):
                names = sorted(sizes.names_in(constraint.left) | sizes.names_in(constraint.right))
                given = ", ".join(f"{n}={origin[n][0]} ({origin[n][1].reference})" for n in names)
                raise SignatureError(
                    f"{self.signature.name}(): the program needs {constraint}, got {given}"
                )

    def _explain_profiles(self, origin: _Origin) -> None:
        profiles = self.signature.profiles
        values = {name: value for name, (value, _) in origin.items()}
        if profiles and not any(profile.contains(values) for profile in profiles):
            named = {name for profile in profiles for name in profile.bounds}
            given = ", ".join(
                f"{name}={value} ({origin[name][1].reference})"
                for name, value in values.items()
                if name in named
            )
            raise SignatureError(
                f"{self.signature.name}(): no profile takes {given}; "
                f"the profiles are {', '.join(map(str, profiles))}"
            )

    def _agree(self, origin: _Origin, name: str, value: int, place: _Place, given: str) -> None:
        """Check the value of a dimension.

        Args:
            origin: The values of the dimensions so far; this one is added.
            name: The dimension.
            value: Its value.
            place: Where the value was found.
            given: The start of the message, with the place.
        """
        dim = next(dim for dim in self.signature.dims if dim.name == name)
        if not dim.contains(value):
            raise SignatureError(
                f"{given}, outside its range {dim.bounds}; "
                "pass a size within it or export with wider bounds"
            )
        first, where = origin.setdefault(name, (value, place))
        if first != value:
            raise SignatureError(f"{given}, but {where.reference} is {first}; both must be equal")

    def _explain_expression(
        self, origin: _Origin, size: sizes.Size, actual: int, place: _Place
    ) -> None:
        text = sizes.render(size)
        solved = sizes.solve(size, actual)
        if solved and solved[0] not in origin:
            name, value = solved
            given = f"{place} is {actual}, which is {text}, so {name!r} is {value}"
            self._agree(origin, name, value, place, given)
        expected = sizes.evaluate(size, {name: value for name, (value, _) in origin.items()})
        if expected not in (actual, None):
            dims = ", ".join(f"{n}={origin[n][0]}" for n in sorted(sizes.names_in(size)))
            raise SignatureError(f"{place} must be {text} = {expected} with {dims}, got {actual}")
        if solved is None and sizes.linear(size):
            raise SignatureError(f"{place} must be {text}, got {actual}")

    def _where(self, index: int) -> str:
        return f"{self.signature.name}(): argument {self._paths[index]}"


class _Place(NamedTuple):
    """A dimension of an input tensor, or with axis -1 an input scalar."""

    function: str
    path: str
    axis: int

    def __str__(self) -> str:
        dimension = f": dimension {self.axis}" if self.axis >= 0 else ""
        return f"{self.function}(): argument {self.path}{dimension}"

    @property
    def reference(self) -> str:
        """The name of this place in a message about another one."""
        dimension = f"dimension {self.axis} of " if self.axis >= 0 else ""
        return f"{dimension}argument {self.path}"


def _expressions_fit(values: dict[str, int], expressions: list[tuple[sizes.Size, int]]) -> bool:
    """Tell whether sizes that are expressions agree; add the dimensions that they determine."""
    for expression, actual in expressions:
        solved = sizes.solve(expression, actual)
        if solved is None and sizes.linear(expression):
            return False
        if solved and values.setdefault(*solved) != solved[1]:
            return False
    return all(
        sizes.evaluate(expression, values) in (actual, None) for expression, actual in expressions
    )


_Origin: TypeAlias = dict[str, tuple[int, _Place]]
"""The value of each dimension, and the first place that has it."""


class _LeafCheck:
    """The requirements of one input leaf, precomputed so that the check at a call is quick."""

    def __init__(self, index: int, spec: Leaf) -> None:
        self.index = index
        self.spec = spec
        self.shape = spec.static_shape if isinstance(spec, TensorSpec) else None
        self.rank = len(spec.shape) if isinstance(spec, TensorSpec) else 0
        self._dtypes: set[Any] = set()
        axes = list(enumerate(spec.shape)) if isinstance(spec, TensorSpec) else []
        self.numbers = [(axis, size) for axis, size in axes if isinstance(size, int)]
        known = [(axis, size) for axis, size in axes if size != sizes.UNKNOWN]
        self.names = [(axis, size) for axis, size in known if isinstance(size, str)]
        self.expressions = [(axis, size) for axis, size in axes if isinstance(size, list)]

    def fits(
        self,
        leaf: Any,
        values: dict[str, int],
        expressions: list[tuple[sizes.Size, int]],
    ) -> bool:
        spec = self.spec
        if not isinstance(spec, TensorSpec):
            return self._scalar_fits(leaf, values, expressions)
        try:
            dtype, shape = leaf.dtype, leaf.shape
        except AttributeError:
            return False
        if dtype not in self._dtypes:
            if dtype_of(dtype) is not spec.dtype:
                return False
            self._dtypes.add(dtype)  # each array library has its own object for a type
        if self.shape is not None:
            return bool(shape == self.shape or tuple(shape) == self.shape)
        if len(shape) != self.rank:
            return False
        for axis, size in self.numbers:
            if shape[axis] != size:
                return False
        for axis, name in self.names:
            size = shape[axis]
            if values.setdefault(name, size) != size:
                return False
        for axis, expression in self.expressions:
            expressions.append((expression, shape[axis]))
        return True

    def _scalar_fits(
        self, leaf: Any, values: dict[str, int], expressions: list[tuple[sizes.Size, int]]
    ) -> bool:
        spec = self.spec
        assert isinstance(spec, ScalarSpec)
        if not _is_number(leaf, spec.kind):
            return False
        if isinstance(spec.size, str):
            return values.setdefault(spec.size, int(leaf)) == int(leaf)
        if spec.size is not None:
            expressions.append((spec.size, int(leaf)))
        return True

    def explain(self, leaf: Any, where: str) -> list[tuple[int, sizes.Size, int]]:
        """Raise for a wrong type, rank or fixed size; return the dynamic sizes to compare."""
        spec = self.spec
        if isinstance(spec, ScalarSpec):
            if _is_too_large(leaf, spec.kind):
                raise SignatureError(f"{where} expects {spec.kind} of 64 bits, got {leaf}")
            if not _is_number(leaf, spec.kind):
                raise SignatureError(f"{where} expects {spec.kind}, got {_describe(leaf)}")
            return [] if spec.size is None else [(-1, spec.size, int(leaf))]
        assert isinstance(spec, TensorSpec)
        given = dtype_of(getattr(leaf, "dtype", None))
        if not hasattr(leaf, "shape") or given is None:
            raise SignatureError(f"{where} expects a tensor {spec}, got {_describe(leaf)}")
        if given is not spec.dtype:
            raise SignatureError(
                f"{where} expects {spec}, got {_describe(leaf)}; "
                f"cast it to {spec.dtype} or export with {given}"
            )
        shape = tuple(leaf.shape)
        if len(shape) != self.rank:
            raise SignatureError(
                f"{where} expects {spec} with {self.rank} dimensions, "
                f"got {_describe(leaf)} with {len(shape)}"
            )
        for axis, size in self.numbers:
            if shape[axis] != size:
                raise SignatureError(
                    f"{where}: dimension {axis} is fixed to {size}, got {shape[axis]} "
                    f"(expected {spec}, got {_describe(leaf)})"
                )
        return [(axis, size, shape[axis]) for axis, size in (*self.names, *self.expressions)]


def _is_number(value: Any, kind: str) -> bool:
    if kind == "bool":
        return isinstance(value, bool)
    if isinstance(value, bool) or _is_too_large(value, kind):
        return False
    return isinstance(value, numbers.Integral if kind == "int" else numbers.Real)


def _is_too_large(value: Any, kind: str) -> bool:
    limit = 2**63 if kind == "int" else 2**1024
    return isinstance(value, numbers.Integral) and not -limit <= int(value) < limit


def _is_constant(value: Any, constant: bool | int | float | str | None) -> bool:
    """Tell whether a value equals the constant of the export; objects were stored as `repr`."""
    if not isinstance(value, (bool, int, float, str, NoneType)):
        return repr(value) == constant
    # By their text: equal values may differ in it (True and 1), and nan does not equal itself.
    return value is constant or (type(value) is type(constant) and repr(value) == repr(constant))


def _describe(value: Any) -> str:
    dtype = dtype_of(getattr(value, "dtype", None))
    if dtype is not None and hasattr(value, "shape"):
        return f"{dtype}[{', '.join(map(str, value.shape))}]"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 60 else text[:57] + '...'}"
