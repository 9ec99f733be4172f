"""Engine functions: execution contexts that run an engine on the caller's stream, per thread."""

from __future__ import annotations

import contextlib
import functools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..artifacts.entry_points import Bounds, EntryPoint, Port
from ..device.cuda import ALIGNMENT
from ..device.gpu_arrays import (
    DeviceBuffer,
    GpuArrays,
    Workspace,
    default_gpu_arrays,
    gpu_arrays_for,
)
from ..errors import ArtifactError, DeviceError, PeltonError, SignatureError
from .engine_host import EngineHost
from .trtm_module import argument_name, port_array, user_ports, with_constants


class EngineFunction:
    """An entry point that an engine runs. Each thread has an execution context of its own.

    Args:
        module: The module with state, weights and device.
        library: The Python module of the engine's library.
        engine: The deserialised engine.
        function: The entry point.

    Raises:
        ArtifactError: The engine does not match the manifest.
    """

    def __init__(self, module: EngineHost, library: Any, engine: Any, function: EntryPoint) -> None:
        self.module = module
        self.library = library
        self.engine = engine
        self.function = function
        self.name = function.name
        self.user_inputs = user_ports(function.inputs)
        self.other_inputs = function.inputs[len(self.user_inputs) :]
        self.stateful = bool(function.ports("state"))
        _check_engine(self)
        on_host = library.TensorLocation.HOST
        ports = (*function.inputs, *function.outputs)
        self.host = {p.name for p in ports if engine.get_tensor_location(p.name) == on_host}
        self.in_place = _written_in_place(self)
        """State outputs that alias their input, as updates of caches may."""
        self._threads = threading.local()

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Call with checked input leaves; return one value for each leaf of the result."""
        context = getattr(self._threads, "context", None)
        if context is None:
            context = self._threads.context = ThreadContext(self)
        results = context.call(leaves)
        return with_constants(self.function.signature.results, iter(results))

    def choose_profile(self, shapes: dict[str, tuple[int, ...]]) -> int:
        """Return the index of the tightest profile that the inputs fit.

        Args:
            shapes: The shape of each input, or the values of a host input, by name.

        Raises:
            SignatureError: None fits.
        """
        profiles = self.function.profiles
        fitting = [
            (sum(_volume(bounds) for bounds in profile.inputs.values()), index)
            for index, profile in enumerate(profiles)
            if all(bounds.contains(shapes[name]) for name, bounds in profile.inputs.items())
        ]
        if fitting or not profiles:
            return min(fitting)[1] if fitting else 0
        given = ", ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
        raise SignatureError(
            f"{self.name}(): no optimisation profile takes {given}; there are: "
            f"{'; '.join(f'{p.name}: {_profile_text(p.inputs)}' for p in profiles)}"
        )

    def failure(self, what: str) -> PeltonError:
        """Return the error for a step that the engine refused, with the errors of its library."""
        return PeltonError(f"{self.name}(): {what}{self.module.log.reason()}")


class ThreadContext:
    """The execution context and the workspace in which one thread calls an engine.

    A context runs one call at a time, so calls on different streams wait for each other.

    Args:
        function: The function.

    Raises:
        DeviceError: There is no memory for another context.
    """

    def __init__(self, function: EngineFunction) -> None:
        self._function = function
        self._module = function.module
        self._gpu = function.module.gpu
        with self._gpu.active():
            self._context = function.engine.create_execution_context()
        if self._context is None:
            raise DeviceError(
                f"{function.name}(): cannot create an execution context on {self._gpu}"
                f"{function.module.log.reason()}"
            )
        self._profile = 0 if function.engine.num_optimization_profiles == 1 else -1
        self._allocators: dict[str, Any] = {}
        self._workspace = Workspace(self._gpu)
        self._done = self._gpu.new_event()
        self._in_use: list[DeviceBuffer] = []
        """The inputs of the current call, and those of the last one that may still be read."""

    def call(self, leaves: Sequence[Any]) -> list[Any]:
        """Call with checked input leaves; return a value for each output of kind `user`.

        Raises:
            DeviceError: An argument is on another device.
            PeltonError: The engine failed.
            SignatureError: No profile fits, or an argument cannot be read.
        """
        function, module = self._function, self._module
        ports = function.user_inputs
        tensors = [leaf for port, leaf in zip(ports, leaves, strict=True) if not port.is_scalar]
        library = (
            gpu_arrays_for(self._gpu, tensors[0]) if tensors else default_gpu_arrays(self._gpu)
        )
        stream = library.stream(module.stream)
        order = module.in_order(stream) if function.stateful else contextlib.nullcontext()
        with self._gpu.active(), order:
            self._gpu.wait(stream, self._done)
            self._bind_inputs(leaves, stream)
            outputs = [self._bind_output(port, library) for port in function.function.outputs]
            if not self._context.execute_async_v3(stream):
                for allocator in self._allocators.values():
                    allocator.check()
                raise function.failure("the engine failed")
            self._gpu.record(self._done, stream)
            self._in_use = [buffer for buffer in self._in_use if buffer.keep_until_complete]
            for port in function.function.outputs:
                if port.kind == "state" and port.name not in function.in_place:
                    module.state[port.origin].swap()
            return [
                output.value(stream)
                for port, output in zip(function.function.outputs, outputs, strict=True)
                if port.kind == "user"
            ]

    def _bind_inputs(self, leaves: Sequence[Any], stream: int) -> None:
        function, given = self._function, {}
        in_use: list[DeviceBuffer] = []
        for port, leaf in zip(function.user_inputs, leaves, strict=True):
            name = argument_name(function.function, port)
            if port.is_scalar or port.name in function.host:
                array = port_array(port, leaf, name)
                given[port.name] = (array.shape, array)
            else:
                given[port.name] = (tuple(leaf.shape), leaf)
        shapes = {
            name: _values(value) if name in function.host else shape
            for name, (shape, value) in given.items()
        }
        self._switch_profile(function.choose_profile(shapes), stream)
        for port in function.user_inputs:
            shape, value = given[port.name]
            name = argument_name(function.function, port)
            if port.name in function.host:
                array = _aligned(value)
                buffer = DeviceBuffer(array.ctypes.data, array)
            else:
                library = gpu_arrays_for(self._gpu, value)
                buffer = library.to_device(value, name, self._workspace, stream)
            in_use.append(buffer)
            self._bind(port, shape, buffer.address)
        for port in function.other_inputs:
            fixed = port.spec.static_shape
            assert fixed is not None
            self._bind(port, fixed, self._module.address(port))
        self._in_use = in_use

    def _switch_profile(self, profile: int, stream: int) -> None:
        if profile != self._profile:
            if not self._context.set_optimization_profile_async(profile, stream):
                raise self._function.failure(f"the engine refused profile {profile}")
            self._profile = profile

    def _bind(self, port: Port, shape: tuple[int, ...], address: int) -> None:
        if not self._context.set_input_shape(port.name, shape):
            raise self._function.failure(f"the engine refused {port.origin} of shape {list(shape)}")
        if not self._context.set_tensor_address(port.name, address):
            raise self._function.failure(f"the engine refused the memory of {port.origin}")

    def _bind_output(self, port: Port, library: GpuArrays) -> Output:
        context, name = self._context, port.name
        shape = tuple(context.get_tensor_shape(name))
        if min(shape, default=0) < 0:
            return self._bind_unsized(port, library)
        nbytes = port.dtype.itemsize * math.prod(shape)
        if port.kind == "state":
            state = self._module.state[port.origin]
            spare = state.current if name in self._function.in_place else state.spare
            if nbytes != spare.nbytes:
                raise self._function.failure(f"state {port.origin} would get the shape {shape}")
            buffer = DeviceBuffer(spare.address, spare)
        elif name in self._function.host:
            array = _aligned(np.zeros(shape, port.dtype.numpy))
            buffer = DeviceBuffer(array.ctypes.data, array)
        else:
            buffer = library.allocate(name, nbytes, self._workspace)
        if not context.set_tensor_address(name, buffer.address):
            raise self._function.failure(f"the engine refused memory for {port.origin}")
        return Output(self._function, port, library, buffer, shape)

    def _bind_unsized(self, port: Port, library: GpuArrays) -> Output:
        """Bind an output allocator: the size of the output is known only once the engine runs."""
        allocator = self._allocators.get(port.name)
        if allocator is None:  # one for all calls: the context stores every one that it is given
            allocator = _allocator_class(self._function.library)()
            if not self._context.set_output_allocator(port.name, allocator):
                raise self._function.failure(f"the engine refused an allocator for {port.origin}")
            self._allocators[port.name] = allocator
        allocator.begin(functools.partial(library.allocate, port.name, work=self._workspace))
        return Output(self._function, port, library, allocator=allocator)


class Output:
    """An output of the current call: its buffer, and the array or number made of it.

    Args:
        function: The function.
        port: The output.
        library: The library of the caller's arrays.
        buffer: Its buffer; None: the allocator has it.
        shape: Its sizes; None: the allocator has them.
        allocator: The output allocator of an output of data-dependent size.
    """

    def __init__(
        self,
        function: EngineFunction,
        port: Port,
        library: GpuArrays,
        buffer: DeviceBuffer | None = None,
        shape: tuple[int, ...] | None = None,
        allocator: Any = None,
    ) -> None:
        self._function = function
        self._port = port
        self._library = library
        self._buffer = buffer
        self._shape = shape
        self._allocator = allocator

    def value(self, stream: int) -> Any:
        """Return the array or number; synchronizes for numbers and host outputs."""
        port, gpu = self._port, self._function.module.gpu
        buffer, shape = self._buffer, self._shape
        if self._allocator is not None:
            buffer, shape = self._allocator.outcome(self._function)
        assert buffer is not None and shape is not None
        if port.name in self._function.host:
            gpu.synchronize(stream)
            array: NDArray[Any] = buffer.owner
        elif port.is_scalar:
            array = gpu.copy_out(buffer.address, shape, port.dtype.numpy, stream)
        else:
            return self._library.result(buffer, shape, port.dtype, stream)
        return array.item() if port.is_scalar else self._library.from_host(array, port.dtype)


@functools.cache
def _allocator_class(library: Any) -> Any:
    class OutputAllocator(library.IOutputAllocator):  # type: ignore[misc]  # no types
        """The buffer and the sizes of one output, as the engine requests and reports them."""

        def __init__(self) -> None:
            library.IOutputAllocator.__init__(self)

        def begin(self, allocate: Callable[[int], DeviceBuffer]) -> None:
            """Prepare for a call; `allocate` returns a buffer of a number of bytes."""
            self._allocate = allocate
            self._buffer: DeviceBuffer | None = None
            self._shape: tuple[int, ...] | None = None
            self._error: Exception | None = None

        def reallocate_output(self, name: str, memory: int, size: int, alignment: int) -> int:
            try:
                self._buffer = self._allocate(size)
            except Exception as error:  # raised by `check`: it must not unwind the engine's code
                self._error = error
                return 0
            return self._buffer.address

        def reallocate_output_async(
            self, name: str, memory: int, size: int, alignment: int, stream: int
        ) -> int:
            return self.reallocate_output(name, memory, size, alignment)

        def notify_shape(self, name: str, shape: Any) -> None:
            self._shape = tuple(shape)

        def check(self) -> None:
            """Raise the error of a failed allocation."""
            if self._error is not None:
                raise self._error

        def outcome(self, function: EngineFunction) -> tuple[DeviceBuffer, tuple[int, ...]]:
            """Return the buffer, which the allocator releases, and the sizes."""
            buffer, shape, self._buffer = self._buffer, self._shape, None
            if shape is None:
                raise function.failure("the engine did not report the size of a result")
            return buffer or self._allocate(0), shape

    return OutputAllocator


def _check_engine(function: EngineFunction) -> None:
    """Refuse an engine whose inputs and outputs are not those of the manifest.

    Raises:
        ArtifactError: Names what differs.
    """
    engine, manifest = function.engine, function.function
    where = f"{function.module.path}: the engine of {function.name}()"
    found = {engine.get_tensor_name(index) for index in range(engine.num_io_tensors)}
    expected = {port.name for port in (*manifest.inputs, *manifest.outputs)}
    if found != expected:
        raise ArtifactError(
            f"{where} has the inputs and outputs {', '.join(sorted(found))}, "
            f"the manifest says {', '.join(sorted(expected))}"
        )
    for port in (*manifest.inputs, *manifest.outputs):
        dtype = engine.get_tensor_dtype(port.name).name
        if dtype != port.dtype.tensorrt:
            raise ArtifactError(f"{where} has {port.name!r} of type {dtype}, expected {port.dtype}")
    count = engine.num_optimization_profiles
    if count < len(manifest.profiles):
        raise ArtifactError(
            f"{where} has {count} profiles, the manifest says {len(manifest.profiles)}"
        )


def _written_in_place(function: EngineFunction) -> set[str]:
    """Return the outputs that alias an input.

    Raises:
        ArtifactError: An output aliases an input that is not the same piece of state.
    """
    aliased = getattr(function.engine, "get_aliased_input_tensor", None)  # not in all versions
    inputs = {port.name: port for port in function.function.inputs}
    found = set()
    for port in function.function.outputs:
        name = aliased(port.name) if aliased else None
        if not name:
            continue
        given = inputs[name]
        if (port.kind, given.kind) != ("state", "state") or port.origin != given.origin:
            raise ArtifactError(
                f"{function.module.path}: the engine of {function.name}() writes {port.name!r} "
                f"into the memory of {name!r}"
            )
        found.add(port.name)
    return found


def _aligned(array: NDArray[Any]) -> NDArray[Any]:
    """Return a contiguous copy at a multiple of `ALIGNMENT` bytes."""
    memory = np.empty(array.nbytes + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    copied = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copied[...] = array
    return copied


def _values(array: NDArray[Any]) -> tuple[int, ...]:
    return tuple(int(value) for value in array.reshape(-1))


def _volume(bounds: Bounds) -> int:
    return math.prod(bounds.max)


def _profile_text(inputs: Any) -> str:
    return ", ".join(f"{n} {list(b.min)}..{list(b.max)}" for n, b in inputs.items())
