"""Package modules: the part of a loaded `.trtm` that TensorRT and the reference engine share."""

from __future__ import annotations

import abc
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..artifacts.entry_points import EntryPoint, Port
from ..artifacts.manifest import Manifest
from ..artifacts.trtm import Package
from ..call.signature import (
    STATE_GET,
    STATE_SET,
    ConstantSpec,
    Leaf,
    Parameter,
    ScalarSpec,
    Signature,
)
from ..device.host_arrays import host_array
from .engine import Run

REFERENCE = "reference"
"""The device that runs a package's ONNX graphs on the CPU."""


class PackageModule(abc.ABC):
    """A loaded package: its signatures, state accessors and lock. Engines implement the rest.

    Args:
        package: The opened file.
        device: The user's name of the device.
    """

    def __init__(self, package: Package, device: str) -> None:
        self.package = package
        self.path: Path = package.path
        self.info: Manifest = package.manifest
        self.device_names = device
        self.stream: int | None = None
        self.lock = threading.RLock()
        """Held for calls of functions that touch state, so that concurrent calls are serialised."""

    @abc.abstractmethod
    def reset(self) -> None:
        """Reset the state to its initial value."""

    @abc.abstractmethod
    def read_state(self, name: str) -> Any:
        """Return a copy of a piece of state as an array."""

    @abc.abstractmethod
    def write_state(self, name: str, value: Any) -> None:
        """Replace a piece of state by a copy of an array or number."""

    @abc.abstractmethod
    def entry_point(self, function: EntryPoint) -> Run:
        """Return an entry point, ready to be called."""

    def signatures(self) -> dict[str, Signature]:
        """Return the signature of each entry point and state accessor, by name."""
        made = {function.name: function.signature for function in self.info.functions}
        value = Parameter("value", "POSITIONAL_OR_KEYWORD", 0)
        for name, port in self.info.state.items():
            spec: Leaf = ScalarSpec(scalar_kind(port)) if port.is_scalar else port.spec
            getter, setter = STATE_GET + name, STATE_SET + name
            made[getter] = Signature(getter, result_tree=0, results=(spec,))
            made[setter] = Signature(setter, (value,), (spec,), mutates=(name,))
        return made

    def function(self, signature: Signature, stateful: bool) -> Run:
        """Return the function with `signature`."""
        name = signature.name
        state = self.info.state
        if name.startswith(STATE_GET):
            port = state[name.removeprefix(STATE_GET)]
            return lambda leaves: [to_scalar(port, self.read_state(port.origin))]
        if name.startswith(STATE_SET):
            return lambda leaves: self._write(name.removeprefix(STATE_SET), leaves[0])
        return self.entry_point(next(f for f in self.info.functions if f.name == name))

    def _write(self, name: str, value: Any) -> list[Any]:
        self.write_state(name, value)
        return []

    def copy_to(self, target: BinaryIO) -> None:
        """Write the bytes of the file that was loaded, even if it was unlinked since."""
        self.package.copy_to(target)


def scalar_kind(port: Port) -> str:
    """Return the kind of Python number that a port is.

    Example:
        >>> from pelton.runtime.call.dtypes import DTYPES
        >>> scalar_kind(Port("n", "user", "n", DTYPES["int64"], (), is_scalar=True))
        'int'
    """
    if port.dtype.name == "bool":
        return "bool"
    return "int" if port.dtype.name.startswith(("int", "uint")) else "float"


def to_scalar(port: Port, value: Any) -> Any:
    """Return the value of a port, as a Python number where the caller expects one."""
    return value.item() if port.is_scalar else value


def user_ports(ports: Sequence[Port]) -> tuple[Port, ...]:
    """Return the ports of kind `user`."""
    return tuple(port for port in ports if port.kind == "user")


def with_constants(specs: Sequence[Leaf], values: Iterator[Any]) -> list[Any]:
    """Return one value for each leaf of a result: the constants, and `values` for all others.

    Example:
        >>> with_constants((ConstantSpec(5), ScalarSpec("int")), iter([3]))
        [5, 3]
    """
    return [spec.value if isinstance(spec, ConstantSpec) else next(values) for spec in specs]


def argument_name(function: EntryPoint, port: Port) -> str:
    """Return the name of an input in messages."""
    return f"{function.name}(): argument {port.origin}"


def port_array(port: Port, value: Any, what: str) -> NDArray[Any]:
    """Return the array of a tensor or number of the caller for a port.

    Args:
        port: The input.
        value: The caller's tensor or number.
        what: Its name in messages.

    Raises:
        SignatureError: numpy cannot read the tensor.
    """
    if port.is_scalar:
        return np.asarray(value, port.dtype.numpy)
    return host_array(value, what)
