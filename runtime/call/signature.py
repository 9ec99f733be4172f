"""Signatures of entry points: parameters, element types, sizes, bounds, containers.

A `Signature` is stored as JSON in the `iree.reflection` attribute of each entry point (key
`SIGNATURE_KEY`), so that an artifact describes itself. Reading one never runs code of the file.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..checked import Decoder
from ..errors import ArtifactError
from . import pytrees, sizes
from .dtypes import DTYPES, DType
from .pytrees import Tree
from .sizes import Constraint, Dim, Profile, Size

FORMAT = 1
"""Version of the JSON form. 1: the first."""

SIGNATURE_KEY = "pelton.signature"
"""Key of the JSON text in an entry point's reflection attribute."""

STATE_GET = "pelton.state.get."
"""Prefix of the functions that return a piece of state."""

STATE_SET = "pelton.state.set."
"""Prefix of the functions that replace a piece of state."""


@dataclass(frozen=True)
class TensorSpec:
    """A tensor: its element type, and a number, name or expression for each dimension."""

    dtype: DType
    shape: tuple[Size, ...]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(sizes.render(size) for size in self.shape)}]"

    @property
    def static_shape(self) -> tuple[int, ...] | None:
        """The shape where all sizes are numbers, else None."""
        return self.shape if all(isinstance(size, int) for size in self.shape) else None


@dataclass(frozen=True)
class ScalarSpec:
    """A Python number: `kind` is `int`, `float` or `bool`; `size` names an integer's dimension."""

    kind: str
    size: Size | None = None

    def __str__(self) -> str:
        return self.kind if self.size is None else f"{self.kind} {sizes.render(self.size)}"


@dataclass(frozen=True)
class ConstantSpec:
    """A value fixed at export: None, a bool, a number or text."""

    value: bool | int | float | str | None

    def __str__(self) -> str:
        return repr(self.value)


Leaf = TensorSpec | ScalarSpec | ConstantSpec
"""One leaf of the arguments or results."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of an entry point.

    Attributes:
        name: As in the Python function.
        kind: Name of a kind of `inspect.Parameter`, such as `KEYWORD_ONLY`.
        tree: Its structure; the leaves are indices into `Signature.inputs`.
    """

    name: str
    kind: str
    tree: Tree


@dataclass(frozen=True)
class Signature:
    """The parameters, inputs and results of an entry point.

    Attributes:
        name: The function's name in the module.
        parameters: In the order of the Python function.
        inputs: The leaves of all parameters.
        result_tree: Structure of the result; leaves are indices into `results`.
        results: The leaves of the result.
        dims: The dynamic dimensions that sizes refer to.
        overwrites_inputs: Whether the compiled code may write to its inputs, so that it gets
            copies: true of files of earlier versions only.
        constraints: Relations between the dimensions beyond their bounds.
        profiles: Alternative sets of their bounds; with none, the dimensions' own bounds count.
        mutates: Names of the state that a call changes.
        location: The user's `file:line`, or empty.
        producer: Versions of the packages that made it, by name.
    """

    name: str
    parameters: tuple[Parameter, ...] = ()
    inputs: tuple[Leaf, ...] = ()
    result_tree: Tree = None
    results: tuple[Leaf, ...] = ()
    dims: tuple[Dim, ...] = ()
    mutates: tuple[str, ...] = ()
    location: str = ""
    producer: dict[str, str] = field(default_factory=dict)
    profiles: tuple[Profile, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    overwrites_inputs: bool = False

    def __str__(self) -> str:
        inputs = ", ".join(f"{path}: {leaf}" for path, leaf in self.named_inputs())
        results = ", ".join(str(leaf) for leaf in self.results)
        conditions = [*map(str, self.dims), *map(str, self.constraints)]
        where = f" where {', '.join(conditions)}" if conditions else ""
        profiles = f" in {' or '.join(map(str, self.profiles))}" if self.profiles else ""
        return f"{self.name}({inputs}) -> ({results}){where}{profiles}"

    def named_inputs(self) -> Iterator[tuple[str, Leaf]]:
        """Yield the path and leaf of each input, in order.

        Example:
            >>> spec = TensorSpec(DTYPES["float32"], ("batch", 4))
            >>> s = Signature("main", (Parameter("x", "POSITIONAL_OR_KEYWORD", 0),), (spec,))
            >>> [(path, str(leaf)) for path, leaf in s.named_inputs()]
            [('x', 'float32[batch, 4]')]
        """
        paths = self.input_paths()
        for index, leaf in enumerate(self.inputs):
            yield paths[index], leaf

    def input_paths(self) -> tuple[str, ...]:
        """Return the path of each input leaf, such as `cache['keys'][0]`."""
        paths: dict[int, str] = {}
        for parameter in self.parameters:
            paths.update(pytrees.leaf_paths(parameter.tree, parameter.name))
        return tuple(paths.get(index, f"#{index}") for index in range(len(self.inputs)))

    def python(self) -> inspect.Signature:
        """Return the signature for `inspect.signature`.

        Constants are defaults; one that stands before a required parameter is keyword-only, so
        that the required ones can be passed by position.

        Example:
            >>> s = Signature("main", (Parameter("n", "KEYWORD_ONLY", 0),), (ConstantSpec(3),))
            >>> str(s.python())
            '(*, n=3)'
        """
        variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        made: list[inspect.Parameter] = []
        required_follows = False
        for parameter in reversed(self.parameters):
            kind = getattr(inspect.Parameter, parameter.kind)
            default = inspect.Parameter.empty if kind in variadic else self._default(parameter)
            if kind not in (*variadic, inspect.Parameter.KEYWORD_ONLY):
                if default is inspect.Parameter.empty:
                    required_follows = True
                elif required_follows:
                    kind = inspect.Parameter.KEYWORD_ONLY
            made.append(inspect.Parameter(parameter.name, kind, default=default))
        return inspect.Signature(sorted(reversed(made), key=lambda parameter: parameter.kind))

    def call_form(self, leaves: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and keyword arguments of a call.

        Args:
            leaves: The values of the inputs at run time, in order; constants are filled in.

        Example:
            >>> parameters = (Parameter("x", "KEYWORD_ONLY", ["list", [0, 1]]),)
            >>> s = Signature("main", parameters, (ScalarSpec("int"), ConstantSpec("a")))
            >>> s.call_form([5])
            ([], {'x': [5, 'a']})
        """
        given = iter(leaves)
        values = [
            leaf.value if isinstance(leaf, ConstantSpec) else next(given) for leaf in self.inputs
        ]
        trees_of = {parameter.name: parameter.tree for parameter in self.parameters}
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter in self.python().parameters.values():
            value = pytrees.unflatten(trees_of[parameter.name], values)
            if parameter.kind is parameter.VAR_POSITIONAL:
                args.extend(value)
            elif parameter.kind is parameter.VAR_KEYWORD:
                kwargs.update(value)
            elif parameter.kind is parameter.KEYWORD_ONLY:
                kwargs[parameter.name] = value
            else:
                args.append(value)
        return args, kwargs

    def _default(self, parameter: Parameter) -> Any:
        indices = pytrees.leaf_paths(parameter.tree, "")
        leaves = [self.inputs[index] for index in indices]
        if not all(isinstance(leaf, ConstantSpec) for leaf in leaves):
            return inspect.Parameter.empty
        values = {i: getattr(self.inputs[i], "value", None) for i in indices}
        return pytrees.unflatten(parameter.tree, values)  # type: ignore[arg-type]

    def to_json(self) -> str:
        """Return the JSON text that `from_json` reads.

        Example:
            >>> Signature.from_json(Signature("main").to_json()) == Signature("main")
            True
        """
        return json.dumps(
            {
                "format": FORMAT,
                "name": self.name,
                "parameters": [[p.name, p.kind, p.tree] for p in self.parameters],
                "inputs": [_leaf_to_json(leaf) for leaf in self.inputs],
                "result_tree": self.result_tree,
                "results": [_leaf_to_json(leaf) for leaf in self.results],
                "dims": [[d.name, d.min, d.max, d.opt, d.symbol] for d in self.dims],
                "mutates": list(self.mutates),
                "location": self.location,
                "producer": self.producer,
                "profiles": [[p.name, p.bounds] for p in self.profiles],
                "overwrites_inputs": self.overwrites_inputs,
                "constraints": [[c.relation, c.left, c.right] for c in self.constraints],
            },
            separators=(",", ":"),
        )

    @staticmethod
    def from_json(text: str) -> Signature:
        """Read a signature.

        Raises:
            ArtifactError: The text is not a signature, or is of another format.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ArtifactError(f"not a signature: {error}") from error
        return Signature.decode(data)

    @staticmethod
    def decode(data: Any) -> Signature:
        """Return the signature that a JSON value describes.

        Raises:
            ArtifactError: It is not what `to_json` writes, or is of another format.
        """
        if not isinstance(data, dict) or "format" not in data:
            raise ArtifactError("not a signature: it states no format")
        stated = {**_ADDED, **data}
        found = stated.pop("format")
        if found != FORMAT:
            raise ArtifactError(
                f"signature of format {found!r}, this version of Pelton reads format {FORMAT}; "
                "load the artifact with the version that made it, or compile it again"
            )
        try:
            signature = _DECODER.decode(Signature, stated, "signature")
            _check(signature)
        except (ValueError, RecursionError) as error:
            raise ArtifactError(f"not a signature: {error}") from error
        return signature


def _check(signature: Signature) -> None:
    """Check that the parts of a signature from a file are consistent.

    Raises:
        ValueError: A parameter is not one of Python, a structure does not fit the leaves, or a
            size depends on an unknown dimension.
    """
    for parameter in signature.parameters:
        if parameter.kind not in _KINDS:
            raise ValueError(f"unknown kind of parameter {parameter.kind!r}")
        pytrees.check(parameter.tree, len(signature.inputs))
    pytrees.check(signature.result_tree, len(signature.results))
    signature.python()
    for constraint in signature.constraints:
        if constraint.relation not in sizes.RELATIONS:
            raise ValueError(f"unknown relation {constraint.relation!r}")
    known = {dim.name for dim in signature.dims}
    for leaf in signature.inputs:
        for size in leaf.shape if isinstance(leaf, TensorSpec) else [getattr(leaf, "size", None)]:
            unknown = sizes.names_in(0 if size is None else size) - known - {sizes.UNKNOWN}
            if unknown:
                raise ValueError(f"dimension {', '.join(sorted(unknown))} is not described")


def _leaf_to_json(leaf: Leaf) -> list[Any]:
    if isinstance(leaf, TensorSpec):
        return ["tensor", leaf.dtype.name, list(leaf.shape)]
    if isinstance(leaf, ScalarSpec):
        return [leaf.kind, leaf.size]
    return ["constant", leaf.value]


def _leaf_from_json(data: Any) -> Leaf:
    match data:
        case ["tensor", dtype, list(shape)]:
            return TensorSpec(dtype_from_json(dtype), tuple(map(size_from_json, shape)))
        case ["constant", None | bool() | int() | float() | str() as value]:
            return ConstantSpec(value)
        case ["int" | "float" | "bool" as kind, size]:
            return ScalarSpec(kind, None if size is None else size_from_json(size))
    raise ValueError(f"{data!r:.80} is not a tensor, number or constant")


def dtype_from_json(name: Any) -> DType:
    """Return the element type of a name in a file.

    Raises:
        ValueError: The name is unknown.

    Example:
        >>> dtype_from_json("int8")
        DTYPES['int8']
    """
    if not isinstance(name, str) or name not in DTYPES:
        raise ValueError(f"unknown element type {name!r:.80}")
    return DTYPES[name]


def size_from_json(data: Any) -> Size:
    """Return the size that a JSON value describes.

    Raises:
        ValueError: It is not a size.

    Example:
        >>> size_from_json(["*", 2, "batch"])
        ['*', 2, 'batch']
    """
    if isinstance(data, (int, str)) and not isinstance(data, bool):
        return data
    if isinstance(data, list) and len(data) == 3 and data[0] in sizes.OPERATORS:
        return [data[0], size_from_json(data[1]), size_from_json(data[2])]
    raise ValueError(f"{data!r:.80} is not a size")


_KINDS = frozenset(
    kind.name
    for kind in (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    )
)

_ADDED = {"profiles": [], "constraints": [], "overwrites_inputs": True}
"""Members that format 1 got later, with their values in files that are older."""

_DECODER = Decoder(
    rows=frozenset([Parameter, Dim, Profile, Constraint]),
    hooks={Leaf: _leaf_from_json, Size: size_from_json},
)
