"""Entry points of a `.trtm` package: ports, bounds, profiles and members of each function."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from urllib.parse import quote

from ..call.dtypes import DType, dtype_of
from ..call.signature import Signature, TensorSpec
from ..call.sizes import Size
from ..checked import JSON_NAME

Kind = Literal["user", "state", "parameter"]
"""Whether a value is passed by the caller, state of the program, or one of its weights."""

Flavor = Literal["rtx", "tensorrt"]
"""The library that the engines are for: TensorRT-RTX or TensorRT."""


@dataclass(frozen=True)
class EngineLibrary:
    """The library that builds and runs engines.

    Attributes:
        module: The Python module.
        package: The package that pip installs.
        title: Its name in messages.
    """

    module: str
    package: str
    title: str


LIBRARIES: dict[Flavor, EngineLibrary] = {
    "rtx": EngineLibrary("tensorrt_rtx", "tensorrt-rtx", "TensorRT-RTX"),
    "tensorrt": EngineLibrary("tensorrt", "tensorrt", "TensorRT"),
}
"""The library of each flavour. The engines of one cannot be read by the other."""

Role = Literal["engine", "reference", "reference_data", "fallback", "fallback_reference", "layers"]
"""The role of a member of a package for a function.

`reference_data` are the external weights of a large ONNX model, which refers to them by the last
part of the member's name, `<function>.onnx.data`.
"""

STATE = "state.safetensors"
"""The member with the initial value of each piece of state, by its name."""

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
    """A port of the compiler; `dtype` is torch's."""

    @property
    def name(self) -> str:
        """The name in the graph."""

    @property
    def kind(self) -> Kind:
        """The kind of its value."""

    @property
    def origin(self) -> str:
        """The argument, result, state or weight that it is."""

    @property
    def dtype(self) -> Any:
        """The element type."""

    @property
    def shape(self) -> tuple[Size, ...]:
        """The sizes."""

    @property
    def is_scalar(self) -> bool:
        """Whether the caller passes or gets a Python number."""


@dataclass(frozen=True)
class Port:
    """An input or output of an engine and of its ONNX graph.

    Attributes:
        name: The name of the tensor in the engine and in the graph.
        kind: The kind of its value.
        origin: The path of an argument or result; the name of a piece of state; `scope::name` of
            an external parameter or the symbol of a weight. Functions share values of equal origin.
        dtype: The element type.
        shape: Its sizes: numbers, dimensions of the function's signature, expressions; `?` for a
            data-dependent size.
        is_scalar: Whether the caller passes or gets a Python number; the engine has a 0-d tensor.
        host: Whether the engine reads it from the host's memory, because shapes depend on it.
    """

    name: str
    kind: Kind
    origin: str
    dtype: DType
    shape: tuple[Size, ...]
    is_scalar: bool = field(default=False, metadata={JSON_NAME: "number"})
    host: bool = False

    @staticmethod
    def of(port: PortLike, *, host: bool = False) -> Port:
        """Return the port for one of the compiler, such as one of `OnnxProgram.inputs`.

        Example:
            >>> from pelton.runtime.call.dtypes import DTYPES
            >>> x = Port("x", "user", "x", DTYPES["float32"], ("batch", 4))
            >>> Port.of(x) == x
            True
        """
        dtype = dtype_of(port.dtype)
        assert dtype is not None, port.dtype
        return Port(port.name, port.kind, port.origin, dtype, port.shape, port.is_scalar, host)

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
        """Tell whether a shape (the values of a host input) is within the bounds.

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

    Other inputs have a fixed shape.
    """

    name: str
    inputs: Mapping[str, Bounds]


@dataclass(frozen=True)
class EntryPoint:
    """One function of a package.

    Attributes:
        signature: Its signature. The ports of kind `user` are its leaves other than constants, in
            order.
        inputs: The inputs of the engine and the graph, those of kind `user` first.
        outputs: The outputs of the engine and the graph, those of kind `user` first.
        profiles: The optimisation profiles, in the order of the engine.
        members: Names of its members by role. A function that IREE runs has a `fallback` and no
            `engine`; its module has state of its own, with the names of the package's.
        report: Facts of the build: layers, memory, seconds.
        notes: Notes for users.
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
        """Return the inputs and outputs of a kind by origin; an origin in both is listed once."""
        return {port.origin: port for port in (*self.outputs, *self.inputs) if port.kind == kind}


@dataclass(frozen=True)
class Member:
    """The size in bytes and the SHA-256 (in hexadecimal) of a member."""

    nbytes: int
    sha256: str
