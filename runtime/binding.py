"""From the arguments of a call to checked leaves: binding, and the check of every size.

The check has two forms over the same compiled facts: `fits` answers quickly and is on the path of
every call; `explain` runs only when it says no, and raises the error that names what is wrong.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from . import sizes, trees
from .dtypes import dtype_of
from .errors import SignatureError
from .signature import ConstantSpec, Leaf, ScalarSpec, Signature, TensorSpec


class Binder:
    """Turns the arguments of a call to one entry point into its checked input leaves.

    Args:
        signature: The entry point's signature.
    """

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.python = signature.python()
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
            raise SignatureError(
                f"{self.signature.name}(): {error}; expected {self.signature.name}{self.python}"
            ) from None
        bound.apply_defaults()
        leaves: list[Any] = [None] * len(self.signature.inputs)
        for parameter in self.signature.parameters:
            value = bound.arguments[parameter.name]
            try:
                trees.flatten(parameter.tree, value, leaves, parameter.name)
            except SignatureError as error:
                raise SignatureError(f"{self.signature.name}(): {error}") from None
        for index, constant in self._constants.items():
            if type(leaves[index]) is not type(constant) or leaves[index] != constant:
                raise SignatureError(
                    f"{self._where(index)} was fixed to {constant!r} at export, "
                    f"got {leaves[index]!r}; export again with an input spec for it"
                )
        return [leaves[index] for index in self.runtime_inputs]

    def fits(self, leaves: Sequence[Any]) -> bool:
        """Tell whether the leaves have the types, ranks and sizes that the function takes."""
        values: dict[str, int] = {}
        expressions: list[tuple[sizes.Size, int]] = []
        for check, leaf in zip(self._checks, leaves, strict=True):
            if not check.fits(leaf, values, expressions):
                return False
        return not (values or expressions) or self._sizes_fit(values, expressions)

    def _sizes_fit(self, values: dict[str, int], expressions: list[tuple[sizes.Size, int]]) -> bool:
        for expression, actual in expressions:
            solved = sizes.solve(expression, actual)
            if solved and values.setdefault(*solved) != solved[1]:
                return False
        for dim in self.signature.dims:
            value = values.get(dim.name)
            if value is not None and not dim.contains(value):
                return False
        return all(
            sizes.evaluate(expression, values) in (actual, None)
            for expression, actual in expressions
        )

    def explain(self, leaves: Sequence[Any]) -> NoReturn:
        """Raise the error that says why `fits` refused the leaves.

        Raises:
            SignatureError: Always.
        """
        origin: dict[str, tuple[int, str]] = {}
        later: list[tuple[_LeafCheck, int, sizes.Size, int]] = []
        for check, leaf in zip(self._checks, leaves, strict=True):
            where = self._where(check.index)
            for axis, size, actual in check.explain(leaf, where):
                if isinstance(size, str):
                    self._agree(origin, size, actual, _dimension(where, axis))
                else:
                    later.append((check, axis, size, actual))
        for check, axis, size, actual in later:
            self._explain_expression(
                origin, size, actual, _dimension(self._where(check.index), axis)
            )
        raise AssertionError(f"{self.signature.name}: refused without a reason")

    def _agree(
        self, origin: dict[str, tuple[int, str]], name: str, actual: int, where: str
    ) -> None:
        dim = next(dim for dim in self.signature.dims if dim.name == name)
        if not dim.contains(actual):
            raise SignatureError(
                f"{where} ('{name}') is {actual}, outside its range {dim.bounds}; "
                "pass a size within it or export with wider bounds"
            )
        first, place = origin.setdefault(name, (actual, where))
        if first != actual:
            raise SignatureError(
                f"{where} ('{name}') is {actual}, but {place} ('{name}') is {first}; "
                f"both must be equal"
            )

    def _explain_expression(
        self, origin: dict[str, tuple[int, str]], size: sizes.Size, actual: int, where: str
    ) -> None:
        solved = sizes.solve(size, actual)
        if solved and solved[0] not in origin:
            self._agree(origin, solved[0], solved[1], f"{where}, which is {sizes.render(size)},")
        expected = sizes.evaluate(size, {name: value for name, (value, _) in origin.items()})
        if expected not in (actual, None):
            dims = ", ".join(f"{n}={origin[n][0]}" for n in sorted(sizes.names_in(size)))
            raise SignatureError(
                f"{where} must be {sizes.render(size)} = {expected} with {dims}, got {actual}"
            )
        if expected is None and solved is None and len(sizes.names_in(size)) == 1:
            raise SignatureError(f"{where} must be {sizes.render(size)}; {actual} is not")

    def _where(self, index: int) -> str:
        return f"{self.signature.name}(): argument {self.signature.input_paths()[index]}"


def _dimension(where: str, axis: int) -> str:
    return where if axis < 0 else f"{where}: dimension {axis}"


class _LeafCheck:
    """What one input leaf must be, taken apart once so that the check at a call is quick."""

    def __init__(self, index: int, spec: Leaf) -> None:
        self.index = index
        self.spec = spec
        self.shape = spec.static_shape if isinstance(spec, TensorSpec) else None
        self.rank = len(spec.shape) if isinstance(spec, TensorSpec) else 0
        self._dtypes: set[Any] = set()
        axes = list(enumerate(spec.shape)) if isinstance(spec, TensorSpec) else []
        self.numbers = [(axis, size) for axis, size in axes if isinstance(size, int)]
        self.names = [(axis, size) for axis, size in axes if isinstance(size, str)]
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
            return bool(shape == self.shape)
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
            return values.setdefault(spec.size, int(leaf)) == leaf
        if spec.size is not None:
            expressions.append((spec.size, int(leaf)))
        return True

    def explain(self, leaf: Any, where: str) -> list[tuple[int, sizes.Size, int]]:
        """Raise for a wrong type, rank or fixed size; return the dynamic sizes to compare."""
        spec = self.spec
        if isinstance(spec, ScalarSpec):
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
    if isinstance(value, bool):
        return False
    return isinstance(value, numbers.Integral if kind == "int" else numbers.Real)


def _describe(value: Any) -> str:
    dtype = dtype_of(getattr(value, "dtype", None))
    if dtype is not None and hasattr(value, "shape"):
        return f"{dtype}[{', '.join(map(str, value.shape))}]"
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) < 60 else text[:57] + '...'}"
