"""A fake GPU for tests on machines without one: CUDA's driver and TensorRT's library on the CPU.

Device memory is host memory, streams do their work at once, and an engine is the ONNX model that
it stands for, run by onnxruntime over the memory at the addresses that it was given.
"""

from __future__ import annotations

import ctypes
import enum
import importlib.machinery
import re
import sys
import types
from typing import Any

import numpy as np
import pytest

from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.device import cuda
from pelton.runtime.engines import tensorrt

VERSION = "1.7.1.116"
OUT_OF_MEMORY = 2


class FakeDriver:
    """The functions of the driver that are used; records allocations and calls."""

    def __init__(self, count: int = 2, capability: tuple[int, int] = (8, 6)) -> None:
        self.count, self.capability = count, capability
        self.memory: dict[int, Any] = {}
        self.handles: set[int] = set()
        self.calls: list[tuple[Any, ...]] = []
        self.limit: int | None = None
        self._next = 0x1000

    def __getattr__(self, name: str) -> Any:
        """Return any other function that `cuda` declares: it does nothing."""
        if name not in cuda._SIGNATURES:
            raise AttributeError(name)
        return lambda *arguments: self.calls.append((name, *arguments)) or 0

    def cuInit(self, flags: int) -> int:
        return 0 if self.count else 100

    def cuGetErrorString(self, status: int, text: Any) -> int:
        text._obj.value = {100: b"no CUDA-capable device", 2: b"out of memory"}.get(status)
        return 0

    def cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.count
        return 0

    def cuDeviceGet(self, device: Any, index: int) -> int:
        device._obj.value = index
        return 0

    def cuDeviceGetName(self, name: Any, size: int, device: int) -> int:
        name.value = b"Fake GPU"
        return 0

    def cuDeviceGetAttribute(self, value: Any, attribute: int, device: int) -> int:
        value._obj.value = {75: self.capability[0], 76: self.capability[1]}[attribute]
        return 0

    def cuDevicePrimaryCtxRetain(self, context: Any, device: int) -> int:
        context._obj.value = 0xC0 + device
        return 0

    def _new_handle(self, pointer: Any, flags: int) -> int:
        self._next += 1
        pointer._obj.value = self._next
        self.handles.add(self._next)
        return 0

    cuStreamCreate = cuEventCreate = _new_handle

    def cuStreamDestroy_v2(self, handle: int) -> int:
        self.handles.remove(handle)
        return 0

    cuEventDestroy_v2 = cuStreamDestroy_v2

    def cuMemAlloc_v2(self, pointer: Any, nbytes: int) -> int:
        if self.limit is not None and nbytes > self.limit:
            return OUT_OF_MEMORY
        memory = np.full(nbytes + cuda.ALIGNMENT, 0xAB, np.uint8)
        address = memory.ctypes.data + -memory.ctypes.data % cuda.ALIGNMENT
        self.memory[address] = memory
        pointer._obj.value = address
        return 0

    def cuMemFree_v2(self, address: int) -> int:
        del self.memory[address]
        return 0

    def _copy(self, target: int, source: int, nbytes: int, stream: int) -> int:
        assert stream in self.handles
        ctypes.memmove(target, source, nbytes)
        return 0

    cuMemcpyHtoDAsync_v2 = cuMemcpyDtoHAsync_v2 = cuMemcpyDtoDAsync_v2 = _copy


class FakeEngine:
    """An engine whose plan is an ONNX model."""

    def __init__(self, plan: bytes, library: FakeLibrary) -> None:
        onnxruntime = pytest.importorskip("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(
            plan, options, providers=["CPUExecutionProvider"]
        )
        self.library = library
        self.inputs = {value.name: value for value in self.session.get_inputs()}
        self.outputs = {value.name: value for value in self.session.get_outputs()}
        self.names = [*self.inputs, *self.outputs]
        self.num_io_tensors = len(self.names)
        self.num_optimization_profiles = library.profiles

    def get_tensor_name(self, index: int) -> str:
        return self.names[index]

    def dtype(self, name: str) -> Any:
        word = re.fullmatch(r"tensor\((\w+)\)", {**self.inputs, **self.outputs}[name].type)
        assert word is not None
        return DTYPES[{"float": "float32", "double": "float64"}.get(word[1], word[1])]

    def get_tensor_dtype(self, name: str) -> Any:
        return types.SimpleNamespace(name=self.dtype(name).tensorrt)

    def get_tensor_location(self, name: str) -> Any:
        on_host = name in self.library.host
        return self.library.TensorLocation.HOST if on_host else self.library.TensorLocation.DEVICE

    def get_aliased_input_tensor(self, name: str) -> str | None:
        return self.library.aliases.get(name)

    def create_execution_context(self) -> Any:
        if self.library.refuses == "context":
            self.library.logger.log(self.library.ILogger.ERROR, "out of memory")
            return None
        self.library.contexts.append(FakeContext(self))
        return self.library.contexts[-1]


class FakeContext:
    def __init__(self, engine: FakeEngine) -> None:
        self.engine, self.library = engine, engine.library
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.addresses: dict[str, int] = {}
        self.allocators: dict[str, Any] = {}
        self.profiles: list[int] = []
        self.streams: list[int] = []

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self.shapes[name] = tuple(shape)
        return self.library.refuses != "shape"

    def set_tensor_address(self, name: str, address: int) -> bool:
        assert address and address % cuda.ALIGNMENT == 0
        self.addresses[name] = address
        return True

    def set_output_allocator(self, name: str, allocator: Any) -> bool:
        self.allocators[name] = allocator
        return True

    def set_optimization_profile_async(self, index: int, stream: int) -> bool:
        self.profiles.append(index)
        return True

    def _run(self) -> dict[str, Any]:
        feeds = {
            name: _array_at(self.addresses[name], self.shapes[name], self.engine.dtype(name).numpy)
            for name in self.engine.inputs
        }
        names = list(self.engine.outputs)
        return dict(zip(names, self.engine.session.run(names, feeds), strict=True))

    def get_tensor_shape(self, name: str) -> tuple[int, ...]:
        """Return the sizes; -1 for a data-dependent size, which the model computes."""
        actual = tuple(np.shape(self._run()[name]))
        known = {size for value in self.engine.inputs.values() for size in map(str, value.shape)}
        words = [
            set(re.findall(r"[A-Za-z_]\w*", str(size))) for size in self.engine.outputs[name].shape
        ]
        unknown = [bool(found) and not found <= known for found in words]
        return tuple(-1 if hidden else n for hidden, n in zip(unknown, actual, strict=True))

    def execute_async_v3(self, stream: int) -> bool:
        self.streams.append(stream)
        if self.library.refuses == "execution":
            self.library.logger.log(self.library.ILogger.ERROR, "the launch\n  failed")
            self.library.logger.log(self.library.ILogger.WARNING, "not an error")
            return False
        for name, value in self._run().items():
            address = self.addresses.get(name)
            if name in self.allocators:
                allocator = self.allocators[name]
                if value.nbytes:
                    address = allocator.reallocate_output_async(name, 0, value.nbytes, 256, stream)
                    if not address:
                        return False
                allocator.notify_shape(name, value.shape)
            if value.nbytes:
                assert address is not None
                ctypes.memmove(address, np.ascontiguousarray(value).ctypes.data, value.nbytes)
        return True


def _array_at(address: int, shape: tuple[int, ...], dtype: Any) -> Any:
    nbytes = int(np.prod(shape)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(address, nbytes), dtype).reshape(shape)


class FakeLibrary(types.ModuleType):
    """The Python module of TensorRT-RTX, as far as it is used.

    Attributes:
        host: Names of inputs and outputs that are in the host's memory.
        aliases: Inputs whose memory outputs share.
        profiles: How many profiles engines have.
        refuses: What fails: `plan`, `context`, `shape`, `execution`.
    """

    class TensorLocation(enum.Enum):
        DEVICE = 0
        HOST = 1

    class ILogger:
        INTERNAL_ERROR, ERROR, WARNING = range(3)

    class IOutputAllocator:
        pass

    def __init__(self, version: str = VERSION) -> None:
        super().__init__("tensorrt_rtx")
        self.__spec__ = importlib.machinery.ModuleSpec("tensorrt_rtx", None)
        self.__version__ = version
        self.host: set[str] = set()
        self.aliases: dict[str, str] = {}
        self.profiles = 1
        self.refuses = ""
        self.contexts: list[FakeContext] = []
        self.logger: Any = None

    def Runtime(self, logger: Any) -> Any:
        self.logger = logger
        return types.SimpleNamespace(deserialize_cuda_engine=self._deserialize)

    def _deserialize(self, plan: memoryview) -> Any:
        if self.refuses == "plan":
            self.logger.log(self.ILogger.ERROR, "Assertion failed: magic tag")
            return None
        return FakeEngine(bytes(plan), self)


class FakeGpu:
    """The fake driver and library, in the places of the real ones."""

    def __init__(self, patch: pytest.MonkeyPatch, driver: FakeDriver | None = None) -> None:
        self.driver = driver or FakeDriver()
        self.library = FakeLibrary()
        self._opened: dict[int, cuda.Gpu] = {}
        patch.setattr(tensorrt, "open_gpu", self.open)
        patch.setitem(sys.modules, "tensorrt_rtx", self.library)

    def open(self, index: int) -> cuda.Gpu:
        return self._opened.setdefault(index, cuda.Gpu(self.driver, index))
