"""What a `.trtm` package says of itself: its entry points, engines, profiles, state, checksums.

The manifest is JSON, and reading one never runs code of the file. Every number of it is checked
here, so that what loads and calls can rely on it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast, get_args
from urllib.parse import quote

from ..archive.layout import require, require_json, require_unique
from ..call.dtypes import DTYPES, DType, dtype_of
from ..call.signature import Signature, TensorSpec, size_from_json
from ..call.sizes import Size
from ..errors import ArtifactError
from .manifest_checks import check_function, check_shared

FORMAT = 1
"""Version of the manifest. 1: the first."""

Kind = Literal["user", "state", "parameter"]
"""Whether a value is the caller's, state of the program, or one of its weights."""

Flavor = Literal["rtx", "tensorrt"]
"""The library that the engines are for: TensorRT-RTX or TensorRT."""


@dataclass(frozen=True)
class EngineLibrary:
    """The library that builds and runs engines.

    Attributes:
        module: The Python module.
        package: What pip installs.
        title: What users call it.
    """

    module: str
    package: str
    title: str


LIBRARIES: dict[Flavor, EngineLibrary] = {
    "rtx": EngineLibrary("tensorrt_rtx", "tensorrt-rtx", "TensorRT-RTX"),
    "tensorrt": EngineLibrary("tensorrt", "tensorrt", "TensorRT"),
}
"""The library of each flavour; none reads the engines of another."""

Role = Literal["engine", "reference", "reference_data", "fallback", "fallback_reference", "layers"]
"""What a member of a package is for a function.

`reference_data` are the weights beside a large ONNX model, which must refer to them by the last
part of the member's name, `<function>.onnx.data`.
"""

STATE = "state.safetensors"
"""The member with the first value of each piece of state, by its name."""

PARAMETERS = "parameters.safetensors"
"""The member with the weights that are inputs of engines, by the origin of their ports."""

_PLACES: dict[Role, tuple[str, str]] = {
    "engine": ("engines", ".engine"),
    "reference": ("reference", ".onnx"),
    "reference_data": ("reference", ".onnx.data"),
    "fallback": ("fallback", ".vmfb"),
    "fallback_reference": ("fallback_reference", ".vmfb"),
    "layers": ("layers", ".json"),
}


def member_name(role: Role, function: str) -> str:
    """Return the name of a function's member.

    Example:
        >>> member_name("engine", "decode")
        'engines/decode.engine'
    """
    folder, suffix = _PLACES[role]
    return f"{folder}/{quote(function, safe='')}{suffix}"


class PortLike(Protocol):
    """What a port of the compiler has; `dtype` is torch's."""

    @property
    def name(self) -> str:
        """The name in the graph."""

    @property
    def kind(self) -> Kind:
        """Whose value it is."""

    @property
    def origin(self) -> str:
        """What it stands for."""

    @property
    def dtype(self) -> Any:
        """The element type."""

    @property
    def shape(self) -> tuple[Size, ...]:
        """The sizes."""

    @property
    def number(self) -> bool:
        """Whether it is a number for the caller."""


@dataclass(frozen=True)
class Port:
    """An input or output of an engine and of its ONNX graph.

    Attributes:
        name: The name of the tensor in the engine and in the graph.
        kind: Whose value it is.
        origin: The path of an argument or result; the name of a piece of state; `scope::name` of
            an external parameter or the symbol of a weight. Functions share what has one origin.
        dtype: The element type.
        shape: Its sizes: numbers, dimensions of the function's signature, expressions; `?` where
            only a run tells.
        number: Whether it is a number for the caller; the engine has a 0-d tensor.
        host: Whether the engine reads it in the host's memory, because shapes depend on its values.
    """

    name: str
    kind: Kind
    origin: str
    dtype: DType
    shape: tuple[Size, ...]
    number: bool = False
    host: bool = False

    @staticmethod
    def of(port: PortLike, *, host: bool = False) -> Port:
        """Return the port of the compiler's, such as one of `OnnxProgram.inputs`.

        Example:
            >>> x = Port("x", "user", "x", DTYPES["float32"], ("batch", 4))
            >>> Port.of(x) == x
            True
        """
        dtype = dtype_of(port.dtype)
        assert dtype is not None, port.dtype
        return Port(port.name, port.kind, port.origin, dtype, port.shape, port.number, host)

    @property
    def spec(self) -> TensorSpec:
        """Its element type and sizes."""
        return TensorSpec(self.dtype, self.shape)


@dataclass(frozen=True)
class Bounds:
    """The smallest, optimal and largest shape of an engine's input; values of a host input."""

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]

    def contains(self, values: Iterable[int]) -> bool:
        """Tell whether a shape (the values of a host input) lies within.

        Example:
            >>> Bounds((1, 4), (2, 4), (8, 4)).contains((3, 4))
            True
        """
        given = tuple(values)
        return len(given) == len(self.min) and all(
            low <= value <= high for low, value, high in zip(self.min, given, self.max, strict=True)
        )


@dataclass(frozen=True)
class EngineProfile:
    """An optimisation profile of an engine, in the engine's order: bounds by input.

    An input that is not here has a fixed shape.
    """

    name: str
    inputs: Mapping[str, Bounds]


@dataclass(frozen=True)
class EntryPoint:
    """One function of a package.

    Attributes:
        signature: What a caller passes and gets. Leaf by leaf, in order, the ports of kind `user`
            are those leaves that are no constants.
        inputs: Of the engine and the graph; first those of the caller.
        outputs: Of the engine and the graph; first the results.
        profiles: In the order of the engine.
        members: Names of its members by role. A function that IREE runs has a `fallback` and no
            `engine`; its module keeps its own state, which has the same names as the package's.
        report: What building told: layers, memory, seconds.
        notes: What a user should know of it.
    """

    signature: Signature
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    profiles: tuple[EngineProfile, ...] = ()
    members: Mapping[Role, str] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The function's name."""
        return self.signature.name

    def ports(self, kind: Kind) -> dict[str, Port]:
        """Return the inputs and outputs of a kind by origin; one that is both comes once."""
        return {port.origin: port for port in (*self.outputs, *self.inputs) if port.kind == kind}


@dataclass(frozen=True)
class Member:
    """The size in bytes and the SHA-256 (in hexadecimal) of a member."""

    nbytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What a package says of itself.

    Attributes:
        flavor: The library that the engines are for.
        engine_version: The version of that library that built them.
        compute_capabilities: The GPUs that they run on, such as `8.6`; empty: any.
        functions: The entry points.
        options: The options that it was compiled with.
        versions: Of the packages that made it.
        notes: What a user should know of the whole.
        members: All members but the manifest; `write_trtm` fills them in.
    """

    flavor: Flavor
    engine_version: str
    compute_capabilities: tuple[str, ...] = ()
    functions: tuple[EntryPoint, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    members: Mapping[str, Member] = field(default_factory=dict)

    @property
    def state(self) -> dict[str, Port]:
        """A port of each piece of state by its name."""
        return self._shared("state")

    @property
    def parameters(self) -> dict[str, Port]:
        """A port of each weight that is an input of engines, by its origin."""
        return self._shared("parameter")

    def _shared(self, kind: Kind) -> dict[str, Port]:
        return {k: port for each in self.functions for k, port in each.ports(kind).items()}

    def to_json(self) -> str:
        """Return the text of the manifest."""
        return json.dumps(
            {
                "format": FORMAT,
                "flavor": self.flavor,
                "engine_version": self.engine_version,
                "compute_capabilities": list(self.compute_capabilities),
                "functions": [_function_to_json(function) for function in self.functions],
                "options": dict(self.options),
                "versions": dict(self.versions),
                "notes": list(self.notes),
                "members": {name: [m.nbytes, m.sha256] for name, m in self.members.items()},
            },
            indent=1,
        )

    @staticmethod
    def from_json(text: bytes) -> Manifest:
        """Read a manifest.

        Raises:
            ArtifactError: It is not what `to_json` writes, of another format, or its parts do not
                fit together.
        """
        data = require_json("manifest", text)
        if data.get("format") != FORMAT:
            raise ArtifactError(
                f"the manifest has format {data.get('format')!r}, this version of Pelton reads "
                f"format {FORMAT}; compile the module again"
            )
        try:
            manifest = Manifest(
                _one_of(Flavor, data["flavor"]),
                _text(data["engine_version"]),
                _texts(data["compute_capabilities"]),
                tuple(_function(function) for function in data["functions"]),
                dict(data["options"]),
                {_text(name): _text(version) for name, version in data["versions"].items()},
                _texts(data["notes"]),
                {_text(name): _member(*member) for name, member in data["members"].items()},
            )
        except ArtifactError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ArtifactError(f"the manifest is damaged: {error!r:.300}") from error
        manifest.check()
        return manifest

    def check(self) -> None:
        """Check that the parts fit together.

        Raises:
            ArtifactError: Names the function and what does not fit.
        """
        require(bool(self.functions), "the package has no entry point")
        require_unique(function.name for function in self.functions)
        for function in self.functions:
            check_function(function, self.members)
        for kind, member in (("state", STATE), ("parameter", PARAMETERS)):
            check_shared(kind, self.functions)
            if self._shared(cast(Kind, kind)):
                require(member in self.members, f"there is no {member} for its {kind}s")


def _function_to_json(function: EntryPoint) -> dict[str, Any]:
    return {
        "signature": json.loads(function.signature.to_json()),
        "inputs": [_port_to_json(port) for port in function.inputs],
        "outputs": [_port_to_json(port) for port in function.outputs],
        "profiles": [
            [profile.name, {n: [b.min, b.opt, b.max] for n, b in profile.inputs.items()}]
            for profile in function.profiles
        ],
        "members": dict(function.members),
        "report": dict(function.report),
        "notes": list(function.notes),
    }


def _function(data: Mapping[str, Any]) -> EntryPoint:
    return EntryPoint(
        Signature.from_json(json.dumps(data["signature"])),
        tuple(_port(port) for port in data["inputs"]),
        tuple(_port(port) for port in data["outputs"]),
        tuple(_profile(*profile) for profile in data["profiles"]),
        {_one_of(Role, role): _text(name) for role, name in data["members"].items()},
        dict(data["report"]),
        _texts(data["notes"]),
    )


def _port_to_json(port: Port) -> dict[str, Any]:
    return {**vars(port), "dtype": port.dtype.name, "shape": list(port.shape)}


def _port(data: Mapping[str, Any]) -> Port:
    number, host = data["number"], data["host"]
    if type(number) is not bool or type(host) is not bool:
        raise ValueError(f"the flags of port {data['name']!r} are no booleans")
    return Port(
        _text(data["name"]),
        _one_of(Kind, data["kind"]),
        _text(data["origin"]),
        DTYPES[data["dtype"]],
        tuple(size_from_json(size) for size in data["shape"]),
        number,
        host,
    )


def _profile(name: Any, inputs: Mapping[str, Any]) -> EngineProfile:
    bounds = {
        _text(n): Bounds(*(_sizes(point) for point in points)) for n, points in inputs.items()
    }
    return EngineProfile(_text(name), bounds)


def _sizes(data: Any) -> tuple[int, ...]:
    if not isinstance(data, list) or not all(type(size) is int for size in data):
        raise ValueError(f"{data!r} is no list of sizes")
    return tuple(data)


def _member(nbytes: Any, sha256: Any) -> Member:
    if type(nbytes) is not int or nbytes < 0 or len(bytes.fromhex(_text(sha256))) != 32:
        raise ValueError(f"{nbytes!r}, {sha256!r} are no size and checksum")
    return Member(nbytes, sha256)


def _one_of(choices: Any, data: Any) -> Any:
    if data not in get_args(choices):
        raise ValueError(f"{data!r} is none of {get_args(choices)}")
    return data


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise TypeError(f"expected text, got {data!r}")
    return data


def _texts(data: Any) -> tuple[str, ...]:
    return tuple(_text(item) for item in data)
