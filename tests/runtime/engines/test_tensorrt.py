"""TensorRT modules on a fake GPU with a fake engine library; everything else is real."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pelton import aot, runtime
from pelton.runtime.artifacts.entry_points import Bounds, EngineProfile, member_name
from pelton.runtime.artifacts.trtm import open_trtm, write_trtm
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.device import cuda, gpu_arrays
from pelton.runtime.engines import tensorrt
from pelton.runtime.engines.engine_host import EngineLog
from pelton.runtime.engines.tensorrt import _logger
from pelton.runtime.engines.tensorrt_context import _allocator_class
from pelton.runtime.errors import (
    ArtifactError,
    DeviceError,
    MissingDependencyError,
    PeltonError,
    SignatureError,
)
from tests.packages import package, with_graphs_as_engines, write_package
from tests.programs import assert_same
from tests.runtime.engines.test_onnxruntime import Decoder, with_fallback
from tests.runtime.fake_gpu import FakeContext, FakeDriver, FakeEngine, FakeGpu
from tests.runtime.programs import (
    Counter,
    Pair,
    add_one,
    export_structured,
    plus_number,
    rows,
    structured,
)

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    return FakeGpu(monkeypatch)


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = aot.export(Counter(), args=(torch.zeros(4),))
    return with_graphs_as_engines(out, tmp_path_factory.mktemp("counter"))


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = aot.export(lambda x: x * 2, args=[rows(0, 8)])
    return with_graphs_as_engines(out, tmp_path_factory.mktemp("sized"))


def test_numpy_in_numpy_out_at_every_size(gpu: FakeGpu, sized: Path) -> None:
    exe = runtime.load(sized)
    for count in (1, 3, 8, 0):
        x = np.random.default_rng(count).random((count, 4), np.float32)
        result = exe(x)
        assert type(result) is np.ndarray and result.shape == (count, 4)
        np.testing.assert_array_equal(result, 2 * x)
    assert exe.device == "cuda:0" and exe.stream in gpu.driver.handles


def test_results_are_not_overwritten_by_later_calls(gpu: FakeGpu, sized: Path) -> None:
    exe = runtime.load(sized)
    first = exe(np.ones((2, 4), np.float32))
    exe(np.zeros((2, 4), np.float32))
    assert (first == 2).all()


def test_strided_arrays_and_torch_tensors_of_the_host_are_right(gpu: FakeGpu, sized: Path) -> None:
    exe = runtime.load(sized)
    x = np.arange(12, dtype=np.float32).reshape(4, 3).T
    backward = np.broadcast_to(x[:, ::-1][:1], (5, 4))
    np.testing.assert_array_equal(exe(backward), 2 * backward)
    tensor = torch.arange(12.0).reshape(4, 3).T.requires_grad_()
    assert_same(exe(tensor), 2 * tensor)


def test_sizes_are_checked_before_the_engine(gpu: FakeGpu, sized: Path) -> None:
    exe = runtime.load(sized)
    with pytest.raises(SignatureError, match=r"dimension 0 \('.*'\) is 9, outside its range"):
        exe(np.zeros((9, 4), np.float32))
    assert gpu.library.contexts == []


def test_containers_and_constants_come_back(gpu: FakeGpu, tmp_path: Path) -> None:
    exe = runtime.load(with_graphs_as_engines(export_structured(tmp_path), tmp_path))
    x, pair = torch.randn(2), Pair(torch.randn(2), torch.randn(3))
    options = {"shift": torch.randn(2), "unused": None}
    assert_same(exe(x, options, pair), structured(x, options, pair))


def test_number_is_read_by_the_engine_on_the_host(gpu: FakeGpu, tmp_path: Path) -> None:
    number = aot.DimensionInputInfo((1, 2, 100))
    out = aot.export(plus_number, args=(torch.zeros(4), number))
    gpu.library.host = {"n"}
    exe = runtime.load(with_graphs_as_engines(out, tmp_path))
    for n in (1, 100):
        assert_same(exe(torch.ones(4), n), (torch.ones(4) + n, n))


def test_number_drives_the_shape_of_a_result(gpu: FakeGpu, tmp_path: Path) -> None:
    number = aot.DimensionInputInfo((1, 2, 100))
    out = aot.export(lambda x, n: x.sum() + torch.arange(n), args=(torch.ones(3), number))
    gpu.library.host = {"n"}
    exe = runtime.load(with_graphs_as_engines(out, tmp_path))
    assert_same(exe(torch.ones(3), 7), 3.0 + torch.arange(7))


def test_result_in_the_memory_of_the_host_is_right(gpu: FakeGpu, sized: Path) -> None:
    gpu.library.host = {"result"}
    assert runtime.load(sized)(np.ones((2, 4), np.float32)).tolist() == [[2.0] * 4] * 2


def test_size_that_depends_on_values_is_asked_for(gpu: FakeGpu, tmp_path: Path) -> None:
    out = aot.export(lambda x: x[x > 0] * 2, args=(torch.zeros(6),))
    exe = runtime.load(with_graphs_as_engines(out, tmp_path))
    x = torch.tensor([-1.0, 2, 3, -4, 5, 0])
    for given in (x, -torch.ones(6), -x):
        assert_same(exe(given), given[given > 0] * 2)
    (context,) = gpu.library.contexts
    assert len(context.allocators) == 1


def test_no_memory_for_a_result_is_told(gpu: FakeGpu, tmp_path: Path) -> None:
    out = aot.export(lambda x: x[x > 0].repeat(100), args=(torch.zeros(64),))
    exe = runtime.load(with_graphs_as_engines(out, tmp_path))
    exe(torch.ones(64) * -1)
    gpu.driver.limit = 1024
    with pytest.raises(PeltonError, match=r"CUDA failed: out of memory \(cuMemAlloc_v2 gave 2\)"):
        exe(torch.ones(64))


def test_state_is_kept_on_the_device_read_written_and_reset(gpu: FakeGpu, counter: Path) -> None:
    exe, eager, x = runtime.load(counter), Counter(), torch.arange(4.0)
    for _ in range(3):
        assert_same(exe(x), eager(x))
    assert_same(dict(exe.state), dict(eager.named_buffers()))
    exe.state["total"] = np.full(4, 10, np.float32)
    assert_same(exe(x), 10 + x)
    exe.reset_state()
    assert_same(exe(x), x)
    assert exe.state["calls"].item() == 1


def test_state_is_double_buffered(gpu: FakeGpu, counter: Path) -> None:
    exe = runtime.load(counter)
    places = set()
    for _ in range(4):
        exe(np.ones(4, np.float32))
        (context,) = gpu.library.contexts
        read, written = context.addresses["state.total"], context.addresses["new_state.total"]
        assert read != written
        places |= {read, written}
    assert len(places) == 2


def test_state_that_the_engine_updates_in_place(gpu: FakeGpu, counter: Path) -> None:
    gpu.library.aliases = {"new_state.total": "state.total"}
    exe, eager, x = runtime.load(counter), Counter(), torch.arange(4.0)
    for _ in range(3):
        assert_same(exe(x), eager(x))
        (context,) = gpu.library.contexts
        assert context.addresses["state.total"] == context.addresses["new_state.total"]
    assert_same(dict(exe.state), dict(eager.named_buffers()))


def test_engine_that_writes_to_an_argument_is_refused(gpu: FakeGpu, sized: Path) -> None:
    gpu.library.aliases = {"result": "x"}
    with pytest.raises(ArtifactError, match=r"main\(\) writes 'result' into the memory of 'x'"):
        runtime.load(sized)


def test_call_that_fails_leaves_the_state(gpu: FakeGpu, counter: Path) -> None:
    exe = runtime.load(counter)
    exe(np.ones(4, np.float32))
    gpu.library.refuses = "execution"
    with pytest.raises(PeltonError) as caught:
        exe(np.ones(4, np.float32))
    assert str(caught.value) == "main(): the engine failed: the launch failed"
    gpu.library.refuses = ""
    assert exe.state["calls"].item() == 1
    np.testing.assert_array_equal(exe(np.ones(4, np.float32)), np.full(4, 2))


def test_entry_points_share_state(gpu: FakeGpu, tmp_path: Path) -> None:
    exe = runtime.load(with_graphs_as_engines(aot.export(Decoder), tmp_path, "put", "add"))
    exe.put(torch.full((4,), 2.0))
    assert_same(exe.add(torch.ones(4)), torch.full((4,), 3.0))


def test_function_that_iree_runs_shares_the_state(
    gpu: FakeGpu, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = with_fallback(aot.export(Counter(), args=(torch.zeros(4),)), tmp_path)
    monkeypatch.setattr(cuda.Gpu, "__str__", lambda self: "cpu")  # IREE has no fake of a GPU
    exe, eager, x = runtime.load(path), Counter(), torch.arange(4.0)
    for _ in range(2):
        assert_same(exe(x), eager(x))
    assert_same(dict(exe.state), dict(eager.named_buffers()))


def test_calls_of_many_threads_have_contexts_of_their_own(gpu: FakeGpu, counter: Path) -> None:
    exe = runtime.load(counter)

    def work() -> None:
        for _ in range(5):
            exe(np.ones(4, np.float32))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert exe.state["calls"].item() == 20
    assert_same(exe.state["total"], torch.full((4,), 20.0))
    assert len(gpu.library.contexts) == 4


def test_memory_and_handles_are_given_back(gpu: FakeGpu, counter: Path) -> None:
    exe = runtime.load(counter)
    exe(np.ones(4, np.float32))
    assert gpu.driver.memory and gpu.driver.handles
    del exe
    gpu.library.contexts.clear()
    gc.collect()
    assert not gpu.driver.memory and not gpu.driver.handles


def profiles(path: Path, *ranges: tuple[int, int]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        out = aot.export(lambda x: x * 2, args=[rows(1, 64)])
        manifest, members = package(out, folder)
        (function,) = manifest.functions
        members[member_name("engine", "main")] = members[member_name("reference", "main")]
        made = tuple(
            EngineProfile(f"p{i}", {"x": Bounds((low, 4), (low, 4), (high, 4))})
            for i, (low, high) in enumerate(ranges)
        )
        function = replace(function, profiles=made)
        write_trtm(folder / "m.trtm", replace(manifest, functions=(function,)), members)
        return folder / "m.trtm"

    return write


def test_tightest_profile_that_fits_is_chosen(gpu: FakeGpu, tmp_path: Path) -> None:
    gpu.library.profiles = 3
    exe = runtime.load(profiles(tmp_path, (1, 64), (1, 1), (2, 8))(tmp_path))
    for count in (1, 4, 5, 60, 1):
        exe(np.zeros((count, 4), np.float32))
    (context,) = gpu.library.contexts
    assert context.profiles == [1, 2, 0, 1]


def test_sizes_that_no_profile_takes_are_refused(gpu: FakeGpu, tmp_path: Path) -> None:
    gpu.library.profiles = 2
    exe = runtime.load(profiles(tmp_path, (1, 1), (8, 64))(tmp_path))
    with pytest.raises(SignatureError) as caught:
        exe(np.zeros((4, 4), np.float32))
    assert str(caught.value) == (
        "main(): no optimisation profile takes x [4, 4]; there are: "
        "p0: x [1, 4]..[1, 4]; p1: x [8, 4]..[64, 4]"
    )


# Arrays on the device


class CudaTensors(gpu_arrays.TorchArrays):
    """torch tensors that count as tensors of the GPU, which is the CPU here."""

    def __init__(self, gpu: cuda.Gpu, stream: int) -> None:
        self._torch, self._gpu, self._device = torch, gpu, torch.device("cpu")
        self._current = stream

    def stream(self, own: int) -> int:
        return self._current


@pytest.fixture
def on_device(gpu: FakeGpu, monkeypatch: pytest.MonkeyPatch) -> cuda.Stream:
    """Make torch's tensors those of the GPU; returns torch's current stream."""
    stream = gpu.open(0).new_stream()
    library = CudaTensors(gpu.open(0), stream.handle)
    plain = gpu_arrays.gpu_arrays_for

    def choose(gpu: cuda.Gpu, array: Any) -> Any:
        return library if isinstance(array, torch.Tensor) else plain(gpu, array)

    for module in ("tensorrt", "tensorrt_context"):
        monkeypatch.setattr(f"pelton.runtime.engines.{module}.gpu_arrays_for", choose)
        monkeypatch.setattr(
            f"pelton.runtime.engines.{module}.default_gpu_arrays", lambda gpu: library
        )
    return stream


def aligned(*shape: int) -> torch.Tensor:
    memory = torch.zeros(int(np.prod(shape)) + 64)
    return memory[-memory.data_ptr() // 4 % 64 :][: int(np.prod(shape))].view(shape)


def test_tensors_of_the_device_cross_without_copies_on_their_stream(
    gpu: FakeGpu, on_device: cuda.Stream, sized: Path
) -> None:
    exe = runtime.load(sized)
    x = aligned(2, 4).copy_(torch.randn(2, 4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "empty", lambda n, dtype, device: aligned(n).view(dtype)[:n])
        result = exe(x)
    assert_same(result, 2 * x)
    (context,) = gpu.library.contexts
    assert context.addresses["x"] == x.data_ptr()
    assert context.addresses["result"] == result.data_ptr()
    assert context.streams == [on_device.handle] != [exe.stream]
    assert "cuStreamSynchronize" not in {name for name, *_ in gpu.driver.calls}


@pytest.fixture
def aligned_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let torch allocate as it does on GPUs."""

    def empty(count: int, dtype: torch.dtype, device: Any) -> torch.Tensor:
        return aligned(count).view(dtype)[:count]

    monkeypatch.setattr(torch, "empty", empty)
    monkeypatch.setattr(torch.Tensor, "clone", lambda x: aligned(*x.shape).copy_(x))


@pytest.mark.usefixtures("on_device", "aligned_memory")
def test_state_of_tensors_of_the_device(gpu: FakeGpu, counter: Path) -> None:
    exe, eager, x = runtime.load(counter), Counter(), torch.arange(4.0)
    for _ in range(3):
        assert_same(exe(x), eager(x))
    assert_same(dict(exe.state), dict(eager.named_buffers()))
    exe.state["total"] = torch.zeros(4)
    assert_same(exe(x), x)


@pytest.mark.usefixtures("on_device", "aligned_memory")
def test_unaligned_and_strided_tensors_of_the_device_are_copied(sized: Path) -> None:
    exe = runtime.load(sized)
    x = aligned(4, 7)[:, 1:5].copy_(torch.randn(4, 4))
    assert_same(exe(x), 2 * x)
    assert_same(exe(x.T), 2 * x.T)
    assert_same(exe(aligned(9)[1:].view(2, 4)), torch.zeros(2, 4))
    assert_same(exe(torch.zeros(0, 4)), torch.zeros(0, 4))


class Interface:
    """An array as CuPy's: it has memory on the device, and says where."""

    def __init__(self, array: Any, stream: int | None = None, strides: Any = None) -> None:
        self.array, self.shape, self.dtype = array, array.shape, array.dtype
        self.__cuda_array_interface__ = {
            **array.__array_interface__,
            "stream": stream,
            "strides": strides,
        }


def numpy_aligned(*shape: int) -> Any:
    return aligned(*shape).numpy()


def test_arrays_with_the_cuda_interface_cross_without_copies(gpu: FakeGpu, sized: Path) -> None:
    exe = runtime.load(sized)
    stream = gpu.open(0).new_stream()
    x = numpy_aligned(2, 4)
    x[:] = np.arange(8).reshape(2, 4)
    result = exe(Interface(x, stream.handle))
    (context,) = gpu.library.contexts
    assert context.addresses["x"] == x.ctypes.data and context.streams == [stream.handle]
    interface = result.__cuda_array_interface__
    assert interface["shape"] == (2, 4) and interface["stream"] == stream.handle
    assert interface["data"][0] == context.addresses["result"]
    exe(np.zeros((2, 4), np.float32))  # does not touch the result
    contents = (np.ctypeslib.ctypes.c_float * 8).from_address(interface["data"][0])
    np.testing.assert_array_equal(np.array(contents).reshape(2, 4), 2 * x)


def test_arrays_with_the_cuda_interface_without_a_stream(gpu: FakeGpu, sized: Path) -> None:
    exe = runtime.load(sized)
    result = exe(Interface(numpy_aligned(3, 4)[1:]))  # unaligned: copied
    assert result.__cuda_array_interface__["stream"] is None
    (context,) = gpu.library.contexts
    assert context.streams == [exe.stream]


def test_arrays_with_gaps_or_of_another_gpu_are_refused(gpu: FakeGpu, sized: Path) -> None:
    exe = runtime.load(sized)
    x = Interface(numpy_aligned(2, 4), strides=(32, 4))
    with pytest.raises(SignatureError, match=r"argument x has gaps between its elements"):
        exe(x)
    other = Interface(numpy_aligned(2, 4))
    other.__dlpack_device__ = lambda: (2, 1)  # type: ignore[attr-defined]
    with pytest.raises(DeviceError, match="argument x is on GPU 1, the program is on cuda:0"):
        exe(other)


def test_tensor_of_another_device_is_refused(gpu: FakeGpu, sized: Path) -> None:
    library = CudaTensors(gpu.open(0), 1)
    library._device = torch.device("cuda", 0)
    with pytest.raises(DeviceError, match=r"x is a tensor on cpu, the program is on cuda:0; move"):
        library.to_device(torch.ones(2), "main(): argument x", gpu_arrays.Workspace(gpu.open(0)), 1)


# What cannot be loaded


def test_machine_without_a_gpu_is_told_what_else_there_is(counter: Path) -> None:
    with pytest.raises(DeviceError) as caught:
        runtime.load(counter)
    assert str(caught.value) == (
        f"{counter} needs a CUDA GPU: this machine has no CUDA GPU, or no driver for it; "
        "device='reference' runs its ONNX graphs on the processor"
    )


def test_driver_without_a_gpu_is_told(monkeypatch: pytest.MonkeyPatch, counter: Path) -> None:
    FakeGpu(monkeypatch, FakeDriver(count=0))
    with pytest.raises(DeviceError, match=r"no CUDA-capable device .* device='reference' runs"):
        runtime.load(counter)


def test_index_of_a_gpu(gpu: FakeGpu, counter: Path) -> None:
    assert runtime.load(counter, device="cuda:1").device == "cuda:1"
    with pytest.raises(DeviceError, match="there is no GPU 2: CUDA has 2, counted from 0"):
        runtime.load(counter, device="cuda:2")
    with pytest.raises(DeviceError, match="device 'cuda:x': the index after ':' must be a number"):
        runtime.load(counter, device="cuda:x")


def test_gpu_of_another_compute_capability_is_refused(
    monkeypatch: pytest.MonkeyPatch, counter: Path
) -> None:
    FakeGpu(monkeypatch, FakeDriver(capability=(9, 0)))
    with pytest.raises(DeviceError) as caught:
        runtime.load(counter)
    assert str(caught.value) == (
        f"{counter} was compiled for GPUs of compute capability 8.6, 8.9, "
        "cuda:0 (Fake GPU) has 9.0; compile it for that as well"
    )


def test_other_version_of_the_library_is_refused(gpu: FakeGpu, counter: Path) -> None:
    gpu.library.__version__ = "1.8.0.3"
    with pytest.raises(DeviceError) as caught:
        runtime.load(counter)
    assert str(caught.value) == (
        f"{counter} holds engines of TensorRT-RTX 1.7.1, version 1.8.0.3 is installed and cannot "
        "read them; compile the module again, or pip install 'tensorrt-rtx==1.7.1.*'"
    )


def test_other_flavour_is_refused(gpu: FakeGpu, tmp_path: Path) -> None:
    out = aot.export(add_one, args=(torch.zeros(4),))
    path = write_package(out, tmp_path, flavor="tensorrt", engine_version="10.9.0.34")
    with pytest.raises(MissingDependencyError) as caught:
        runtime.load(path)
    assert str(caught.value) == (
        f"{path} holds engines of TensorRT 10.9.0, which is not installed (TensorRT-RTX, which "
        "is, cannot read them): pip install 'tensorrt==10.9.0.*'"
    )


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        ("plan", "cannot read engines/main.engine: Assertion failed: magic tag"),
        ("context", r"cannot create an execution context on cuda:0: out of memory"),
        ("shape", r"main\(\): the engine refused x of shape \[4\]"),
    ],
)
def test_engine_that_refuses_says_why(
    gpu: FakeGpu, counter: Path, refused: str, message: str
) -> None:
    gpu.library.refuses = refused
    with pytest.raises(PeltonError, match=message):
        runtime.load(counter)(np.zeros(4, np.float32))


def test_engine_of_another_function_is_refused(gpu: FakeGpu, tmp_path: Path) -> None:
    manifest, members = package(aot.export(add_one, args=(torch.zeros(4),)), tmp_path)
    other = aot.export(lambda y: y + 1, args=(torch.zeros(4),)).to_onnx(tmp_path / "y.onnx")
    members[member_name("engine", "main")] = other.to_bytes()
    write_trtm(tmp_path / "m.trtm", manifest, members)
    with pytest.raises(ArtifactError, match="inputs and outputs result, y, the manifest says"):
        runtime.load(tmp_path / "m.trtm")
    wrong = aot.export(add_one, args=(torch.zeros(4, dtype=torch.int32),))
    members[member_name("engine", "main")] = wrong.to_onnx(tmp_path / "i.onnx").to_bytes()
    write_trtm(tmp_path / "m.trtm", manifest, members)
    with pytest.raises(ArtifactError, match="has 'x' of type INT32, expected float32"):
        runtime.load(tmp_path / "m.trtm")


def test_tampered_engine_is_refused_before_it_is_used(gpu: FakeGpu, counter: Path) -> None:
    data = bytearray(counter.read_bytes())
    data[data.index(b"pytorch")] ^= 1
    with pytest.raises(ArtifactError, match=r"damaged: the SHA-256 of engines/main.engine is"):
        runtime.load(bytes(data))


# The fake beside the real library


def test_real_library_has_what_is_used_of_the_fake() -> None:
    real = pytest.importorskip("tensorrt_rtx")
    for fake, kind in ((FakeContext, real.IExecutionContext), (FakeEngine, real.ICudaEngine)):
        used = {name for name in vars(fake) if not name.startswith("_")} - {"dtype"}
        assert used - set(dir(kind)) == set()
    assert {"num_io_tensors", "num_optimization_profiles"} <= set(dir(real.ICudaEngine))
    assert {"HOST", "DEVICE"} <= set(real.TensorLocation.__members__)
    names = set(real.DataType.__members__)
    assert {dtype.tensorrt for dtype in DTYPES.values() if dtype.tensorrt} <= names


def test_real_library_takes_our_logger_and_allocator() -> None:
    real = pytest.importorskip("tensorrt_rtx")
    log = EngineLog()
    assert real.Runtime(_logger(real, log)).deserialize_cuda_engine(memoryview(b"no plan")) is None
    assert "Error Code" in log.reason() and log.reason() == ""
    allocator = _allocator_class(real)()
    allocator.begin(lambda nbytes: gpu_arrays.DeviceBuffer(nbytes, None))
    assert allocator.reallocate_output_async("y", 0, 512, 256, 0) == 512
    allocator.notify_shape("y", real.Dims((2, 3)))
    assert allocator.outcome(None)[1] == (2, 3)


def test_real_engine_reaches_the_real_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trt = pytest.importorskip("tensorrt_rtx")
    out = aot.export(lambda x: x * 2, args=[rows(1, 8)])
    manifest, members = package(out, tmp_path, engine_version=trt.__version__)
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network, config = builder.create_network(0), builder.create_builder_config()
    parser = trt.OnnxParser(network, logger)
    assert parser.parse(bytes(members[member_name("reference", "main")]))
    profile = builder.create_optimization_profile()
    profile.set_shape("x", (1, 4), (2, 4), (8, 4))
    config.add_optimization_profile(profile)
    plan = memoryview(builder.build_serialized_network(network, config))
    members[member_name("engine", "main")] = plan
    write_trtm(tmp_path / "m.trtm", manifest, members)
    assert bytes(open_trtm(tmp_path / "m.trtm").read(member_name("engine", "main"))) == bytes(plan)
    opened = cuda.Gpu(FakeDriver(), 0)
    monkeypatch.setattr(tensorrt, "open_gpu", lambda index: opened)
    with pytest.raises(ArtifactError, match=r"cannot read engines/main.engine: .*CUDA"):
        runtime.load(tmp_path / "m.trtm")
