"""TensorRT modules: the engines of a package on a CUDA GPU, and the state between calls."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..archive.parameter import Parameter
from ..artifacts.entry_points import LIBRARIES, EntryPoint, Port
from ..artifacts.manifest import Manifest
from ..artifacts.trtm import Package
from ..device.cuda import Block, Gpu, open_gpu
from ..device.gpu_arrays import DoubleBuffer, Workspace, default_gpu_arrays, gpu_arrays_for
from ..errors import ArtifactError, DeviceError, MissingDependencyError
from .engine import Run
from .engine_host import EngineLog
from .tensorrt_context import EngineFunction
from .trtm_module import REFERENCE, PackageModule, port_array


class TensorRTModule(PackageModule):
    """A package on a GPU: an engine for each entry point, weights and state on the device.

    Args:
        package: The opened file.
        device: `cuda` or `cuda:1`.
        weights: The weights that are inputs of engines, by origin.

    Raises:
        ArtifactError: An engine is damaged, or does not match the manifest.
        DeviceError: There is no GPU, or the engines are for other ones or another version.
        MissingDependencyError: The library of the engines is not installed.
    """

    def __init__(self, package: Package, device: str, weights: Mapping[str, Parameter]) -> None:
        self.gpu = _open(package, device)
        super().__init__(package, str(self.gpu))
        library = _import_library(package)
        _check_gpu(package, self.gpu)
        self._own = self.gpu.new_stream()
        self.stream: int = self._own.handle
        self.log = EngineLog()
        with self.gpu.active():
            self._runtime = library.Runtime(_logger(library, self.log))
        self._weights = {origin: self._upload(weight) for origin, weight in weights.items()}
        self.state: dict[str, DoubleBuffer] = {
            name: DoubleBuffer(self._upload(value), self.gpu.allocate(value.nbytes))
            for name, value in package.initial_state.items()
        }
        self._state_done = self.gpu.new_event()
        self._workspace = Workspace(self.gpu)
        self._functions = {f.name: self._load(library, f, weights) for f in self.info.functions}

    def _upload(self, value: Parameter) -> Block:
        array = value.array().copy(order="C")
        block = self.gpu.allocate(array.nbytes)
        self.gpu.copy_in(block, array, self.stream)
        return block

    def _load(self, library: Any, function: EntryPoint, weights: Mapping[str, Parameter]) -> Run:
        if "engine" not in function.members:
            from .iree_fallback import FallbackFunction  # IREE is loaded only where it is needed

            return FallbackFunction(self, function, "fallback", str(self.gpu), weights)
        member = function.members["engine"]
        plan = self.package.read(member)
        with self.gpu.active():
            engine = self._runtime.deserialize_cuda_engine(plan)
        if engine is None:
            raise ArtifactError(
                f"{self.path}: {library.__name__} {library.__version__} cannot read {member}"
                f"{self.log.reason()}"
            )
        return EngineFunction(self, library, engine, function)

    def entry_point(self, function: EntryPoint) -> Run:
        """Return an entry point, ready to be called."""
        return self._functions[function.name]

    def address(self, port: Port) -> int:
        """Return the device address of an input that the caller does not pass."""
        if port.kind == "state":
            return self.state[port.origin].current.address
        return self._weights[port.origin].address

    @contextmanager
    def in_order(self, stream: int) -> Iterator[None]:
        """Order work on state: after all that was enqueued before, on whichever stream."""
        with self.lock:
            self.gpu.wait(stream, self._state_done)
            try:
                yield
            finally:
                self.gpu.record(self._state_done, stream)

    def reset(self) -> None:
        """Put the initial state back."""
        for name, value in self.package.initial_state.items():
            with self.in_order(self.stream):
                self.gpu.copy_in(
                    self.state[name].current, value.array().copy(order="C"), self.stream
                )

    def read_state(self, name: str) -> Any:
        """Return a copy of a piece of state as an array: torch's where torch can use GPUs."""
        library, port = default_gpu_arrays(self.gpu), self.info.state[name]
        stream = library.stream(self.stream)
        shape = port.spec.static_shape
        assert shape is not None
        with self.in_order(stream):
            current = self.state[name].current
            buffer = library.allocate(f"state {name}", current.nbytes, self._workspace)
            self.gpu.copy(buffer.address, current.address, current.nbytes, stream)
            return library.result(buffer, shape, port.dtype, stream)

    def write_state(self, name: str, value: Any) -> None:
        """Replace a piece of state by a copy of an array or number."""
        port, what = self.info.state[name], f"state {name!r}"
        if port.is_scalar:
            value = port_array(port, value, what)
        library = gpu_arrays_for(self.gpu, value)
        stream = library.stream(self.stream)
        with self.in_order(stream):
            current = self.state[name].current
            buffer = library.to_device(value, what, self._workspace, stream)
            self.gpu.copy(current.address, buffer.address, current.nbytes, stream)


def _logger(library: Any, log: EngineLog) -> Any:
    """Return a logger of the library that adds its errors to a log, and prints nothing."""
    errors = (library.ILogger.INTERNAL_ERROR, library.ILogger.ERROR)

    class Logger(library.ILogger):  # type: ignore[misc]  # the library has no types
        def __init__(self) -> None:
            library.ILogger.__init__(self)

        def log(self, severity: Any, msg: str) -> None:
            if severity in errors:
                log.add(msg)

    return Logger()


def _open(package: Package, device: str) -> Gpu:
    _, colon, index = device.partition(":")
    if colon and not index.isdigit():
        raise DeviceError(f"device {device!r}: the index after ':' must be a number")
    try:
        return open_gpu(int(index or 0))
    except DeviceError as error:
        has_graphs = all("reference" in f.members for f in package.manifest.functions)
        way_out = (
            f"device={REFERENCE!r} runs its ONNX graphs on the processor"
            if has_graphs
            else f"compiled with reference=True, it also runs on device={REFERENCE!r}"
        )
        raise DeviceError(f"{package.path} needs a CUDA GPU: {error}; {way_out}") from error


def _import_library(package: Package) -> Any:
    """Import the library of the engines, and check that it can read them."""
    manifest = package.manifest
    needed = LIBRARIES[manifest.flavor]
    version = _release(manifest.engine_version)
    try:
        library = importlib.import_module(needed.module)
    except ImportError as error:
        raise MissingDependencyError(
            f"{package.path} holds engines of {needed.title} {version}, which is not installed"
            f"{_other_installed(manifest)}: pip install '{needed.package}=={version}.*'"
        ) from error
    if _release(library.__version__) != version:
        raise DeviceError(
            f"{package.path} holds engines of {needed.title} {version}, version "
            f"{library.__version__} is installed and cannot read them; compile the module again, "
            f"or pip install '{needed.package}=={version}.*'"
        )
    return library


def _other_installed(manifest: Manifest) -> str:
    """Return a clause about the library of the other flavour, if that one is installed."""
    others = [
        library.title
        for flavor, library in LIBRARIES.items()
        if flavor != manifest.flavor and importlib.util.find_spec(library.module)
    ]
    return f" ({others[0]}, which is, cannot read them)" if others else ""


def _release(version: str) -> str:
    """Return the first three parts of a version, which engines depend on.

    Example:
        >>> _release("1.7.1.116")
        '1.7.1'
    """
    return ".".join(version.split(".")[:3])


def _check_gpu(package: Package, gpu: Gpu) -> None:
    wanted = package.manifest.compute_capabilities
    if wanted and gpu.compute_capability not in wanted:
        raise DeviceError(
            f"{package.path} was compiled for GPUs of compute capability {', '.join(wanted)}, "
            f"{gpu} ({gpu.name}) has {gpu.compute_capability}; compile it for that as well"
        )
