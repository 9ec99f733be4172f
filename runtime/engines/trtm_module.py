"""Packages as loaded modules: what TensorRT and the reference engine have in common."""

from __future__ import annotations

import abc
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ..archive import archives
from ..archive.parameter import Parameter as Tensor
from ..archive.parameter import parameter_of
from ..artifacts.manifest import EntryPoint, Manifest, Port
from ..artifacts.trtm import Package, open_trtm
from ..call.signature import (
    STATE_GET,
    STATE_SET,
    ConstantSpec,
    Leaf,
    Parameter,
    ScalarSpec,
    Signature,
)
from ..errors import DeviceError, ParameterError, SignatureError
from .engine import LoadedModule, Run

REFERENCE = "reference"
"""The device that runs a package's ONNX graphs on the processor."""


def load_trtm(
    path: Path,
    device: str | Sequence[str] | None,
    parameters: Any,
    allow_unused_parameters: bool,
) -> LoadedModule:
    """Load a `.trtm`; arguments and errors are those of `runtime.load`."""
    package = open_trtm(path)
    if device is not None and not isinstance(device, str):
        names = list(device)
        if len(names) != 1:
            raise DeviceError(f"{path} is for 1 device, device= names {len(names)}: {names}")
        device = names[0]
    kind = (device or "cuda").partition(":")[0]
    if kind not in ("cuda", REFERENCE) or (kind == REFERENCE and device != REFERENCE):
        raise DeviceError(
            f"{path} holds engines for CUDA GPUs, there is no device {device!r} for it; known: "
            f"cuda, with an optional index as in cuda:1, and {REFERENCE}, which runs its ONNX "
            "graphs on the processor"
        )
    weights = choose_weights(package, parameters, allow_unused_parameters)
    if kind == REFERENCE:
        from .onnxruntime import ReferenceModule

        return ReferenceModule(package, weights)
    from .tensorrt import TensorRTModule

    return TensorRTModule(package, device or "cuda", weights)


def choose_weights(package: Package, given: Any, allow_unused: bool) -> dict[str, Tensor]:
    """Return the weights that are inputs of engines, by origin: given ones before the package's.

    Raises:
        ParameterError: Those that were given are not what the engines take.
    """
    weights: dict[str, Tensor] = dict(package.parameters)
    if given is None:
        return weights
    needed: dict[str, dict[str, Any]] = {}
    for origin, port in package.manifest.parameters.items():
        scope, separator, name = origin.partition("::")
        if separator:
            needed.setdefault(scope, {})[name] = (port.dtype, port.spec.static_shape)
    if not needed:
        raise ParameterError(
            f"{package.path} takes no parameters: its weights are in its engines; compile it "
            "with weights='shared' to keep them outside"
        )
    sets = archives.load_parameters(given, tuple(needed))
    archives.check_parameters(needed, sets, allow_unused=allow_unused)
    for scope, names in needed.items():
        weights.update({f"{scope}::{name}": sets[scope][name] for name in names})
    return weights


class PackageModule(abc.ABC):
    """A loaded package: its signatures and the order of its calls; engines fill in the rest.

    Args:
        package: The opened file.
        device: What users call the device.
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
        """Put the initial state back."""

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
            spec: Leaf = ScalarSpec(number_kind(port)) if port.number else port.spec
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
            return lambda leaves: [as_number(port, self.read_state(port.origin))]
        if name.startswith(STATE_SET):
            return lambda leaves: self._write(name.removeprefix(STATE_SET), leaves[0])
        return self.entry_point(next(f for f in self.info.functions if f.name == name))

    def _write(self, name: str, value: Any) -> list[Any]:
        self.write_state(name, value)
        return []

    def copy_to(self, target: BinaryIO) -> None:
        """Write the bytes of the file that was loaded, even where its name is gone by now."""
        self.package.copy_to(target)


def number_kind(port: Port) -> str:
    """Return the kind of Python number that a port is.

    Example:
        >>> from .dtypes import DTYPES
        >>> number_kind(Port("n", "user", "n", DTYPES["int64"], (), number=True))
        'int'
    """
    if port.dtype.name == "bool":
        return "bool"
    return "int" if port.dtype.name.startswith(("int", "uint")) else "float"


def as_number(port: Port, value: Any) -> Any:
    """Return the value of a port: a Python number where the caller takes one."""
    return value.item() if port.number else value


def user_ports(ports: Sequence[Port]) -> tuple[Port, ...]:
    """Return those of a function's inputs or outputs that are the caller's."""
    return tuple(port for port in ports if port.kind == "user")


def with_constants(specs: Sequence[Leaf], values: Iterator[Any]) -> list[Any]:
    """Return one value for each leaf of a result: the constants, and `values` for all others.

    Example:
        >>> with_constants((ConstantSpec(5), ScalarSpec("int")), iter([3]))
        [5, 3]
    """
    return [spec.value if isinstance(spec, ConstantSpec) else next(values) for spec in specs]


def argument_name(function: EntryPoint, port: Port) -> str:
    """Return what an input is called in messages."""
    return f"{function.name}(): argument {port.origin}"


def host_array(value: Any, what: str) -> NDArray[Any]:
    """Return a contiguous array in the host's memory of a tensor of any library.

    Raises:
        SignatureError: numpy cannot read the tensor; `what` begins the message.
    """
    try:
        return np.asarray(parameter_of("value", value).array(), order="C")
    except ParameterError as error:
        raise SignatureError(f"{what}: {error}") from error


def port_array(port: Port, value: Any, what: str) -> NDArray[Any]:
    """Return the array of a tensor or number of the caller for a port."""
    if port.number:
        return np.asarray(value, port.dtype.numpy)
    return host_array(value, what)
