"""Reference engine: onnxruntime runs a package's ONNX graphs on the CPU.

It computes the graphs that the engines were built from, with the same entry points, bounds and
state, on machines without a GPU. It is for checks, not for speed.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..archive.parameter import Parameter as Tensor
from ..artifacts.entry_points import EntryPoint, Port
from ..artifacts.trtm import Package
from ..device import host_arrays
from ..errors import ArtifactError, DeviceError, MissingDependencyError, PeltonError
from .engine import Run
from .trtm_module import (
    REFERENCE,
    PackageModule,
    argument_name,
    port_array,
    to_scalar,
    user_ports,
    with_constants,
)

_RUNNABLE = ("reference", "fallback_reference")


class ReferenceModule(PackageModule):
    """A package on the CPU: one onnxruntime session for each entry point.

    Args:
        package: The opened file.
        weights: The weights that are inputs of the graphs, by origin.

    Raises:
        ArtifactError: The package has no reference graphs, or they are damaged.
        DeviceError: onnxruntime cannot run a graph on the CPU.
        MissingDependencyError: onnxruntime is not installed.
    """

    def __init__(self, package: Package, weights: Mapping[str, Tensor]) -> None:
        super().__init__(package, REFERENCE)
        self._check()
        self.weights = weights
        self._arrays = {origin: weight.array() for origin, weight in weights.items()}
        self._state: dict[str, NDArray[Any]] = {}
        self.reset()
        self._functions = {f.name: self._load(f) for f in self.info.functions}

    def _check(self) -> None:
        without = [f.name for f in self.info.functions if not {*_RUNNABLE} & {*f.members}]
        if without:
            raise ArtifactError(
                f"{self.path} has no reference graph of {', '.join(without)}; compile it with "
                f"reference=True, or run it on a CUDA GPU"
            )
        narrow = [
            f"{function.name}(): {port.name} ({port.dtype})"
            for function in self.info.functions
            if "reference" in function.members
            for port in (*function.inputs, *function.outputs)
            if port.dtype.is_float8 or port.dtype.name == "bfloat16"
        ]
        if narrow:
            raise DeviceError(
                f"{self.path} cannot run on device {REFERENCE!r}: onnxruntime has no bfloat16 and "
                f"float8 on the processor ({', '.join(narrow)}); export it with float32 for checks"
            )

    def _load(self, function: EntryPoint) -> Run:
        if "reference" in function.members:
            return _GraphFunction(self, function, _session(self.package, function))
        from .iree_fallback import FallbackFunction  # IREE is loaded only where it is needed

        return FallbackFunction(self, function, "fallback_reference", "cpu", self.weights)

    def entry_point(self, function: EntryPoint) -> Run:
        """Return an entry point, ready to be called."""
        return self._functions[function.name]

    def reset(self) -> None:
        """Reset the state to its initial value."""
        with self.lock:
            initial = self.package.initial_state
            self._state = {name: value.array().copy() for name, value in initial.items()}

    def read_state(self, name: str) -> Any:
        """Return a copy of a piece of state as an array."""
        with self.lock:
            value = self._state[name].copy()
        return host_arrays.default_arrays().from_host(value, self.info.state[name].dtype)

    def write_state(self, name: str, value: Any) -> None:
        """Replace a piece of state by a copy of an array or number."""
        port = self.info.state[name]
        with self.lock:
            self._state[name] = port_array(port, value, f"state {name!r}").copy()

    def feed(self, port: Port) -> NDArray[Any]:
        """Return the value of an input that the caller does not pass."""
        return (self._state if port.kind == "state" else self._arrays)[port.origin]

    def store(self, port: Port, value: NDArray[Any]) -> None:
        """Replace a piece of state by the output of a function."""
        self._state[port.origin] = np.array(value)


class _GraphFunction:
    """An entry point that onnxruntime runs.

    Args:
        module: The module with the state.
        function: The entry point.
        session: The `onnxruntime.InferenceSession` of its graph.
    """

    def __init__(self, module: ReferenceModule, function: EntryPoint, session: Any) -> None:
        self._module = module
        self._function = function
        self._session = session
        self._user = user_ports(function.inputs)
        self._others = function.inputs[len(self._user) :]
        self._outputs = [port.name for port in function.outputs]
        self._stateful = bool(function.ports("state"))

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Call with checked input leaves; return one value for each leaf of the result."""
        feeds: dict[str, NDArray[Any]] = {}
        library: host_arrays.ArrayLibrary | None = None
        for port, leaf in zip(self._user, leaves, strict=True):
            if not port.is_scalar:
                library = library or host_arrays.arrays_for(leaf)
            feeds[port.name] = port_array(port, leaf, argument_name(self._function, port))
        if self._stateful:
            with self._module.lock:
                values = self._run(feeds)
        else:
            values = self._run(feeds)
        return self._convert(values, library or host_arrays.default_arrays())

    def _run(self, feeds: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
        feeds |= {port.name: self._module.feed(port) for port in self._others}
        try:
            values = self._session.run(self._outputs, feeds)
        except Exception as error:  # onnxruntime's errors have no other base
            text = " ".join(str(error).split())[:400]
            raise PeltonError(f"{self._function.name}() failed at run time: {text}") from error
        for port, value in zip(self._function.outputs, values, strict=True):
            if port.kind == "state":
                self._module.store(port, value)
        return list(values)

    def _convert(self, values: list[NDArray[Any]], library: host_arrays.ArrayLibrary) -> list[Any]:
        results = (
            to_scalar(port, np.asarray(value))
            if port.is_scalar
            else library.from_host(np.asarray(value), port.dtype)
            for port, value in zip(self._function.outputs, values, strict=True)
            if port.kind == "user"
        )
        return with_constants(self._function.signature.results, results)


def _session(package: Package, function: EntryPoint) -> Any:
    try:
        onnxruntime = importlib.import_module("onnxruntime")
    except ImportError as error:
        raise MissingDependencyError(
            f"device {REFERENCE!r} needs onnxruntime, which is not installed: "
            "pip install onnxruntime"
        ) from error
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    data = function.members.get("reference_data")
    if data is not None:
        contents = package.read(data)
        options.add_external_initializers_from_files_in_memory(
            [Path(data).name], [contents], [len(contents)]
        )
    try:
        return onnxruntime.InferenceSession(
            bytes(package.read(function.members["reference"])),
            options,
            providers=["CPUExecutionProvider"],
        )
    except ArtifactError:
        raise
    except Exception as error:  # onnxruntime's errors have no other base
        text = " ".join(str(error).split())[:400]
        raise DeviceError(
            f"{package.path}: {function.name}() cannot run on device {REFERENCE!r}: {text}"
        ) from error
