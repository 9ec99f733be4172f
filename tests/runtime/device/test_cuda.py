"""The CUDA driver through ctypes: with a fake in Python, and with a library made of C."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from pelton.runtime.device import cuda
from pelton.runtime.errors import DeviceError, PeltonError
from tests.runtime.fake_gpu import FakeDriver

SOURCE = """
#include <stdlib.h>
#include <string.h>
typedef int R;
R cuInit(unsigned f) { return f; }
R cuGetErrorString(R e, const char **s) { *s = "made up"; return 0; }
R cuDeviceGetCount(int *n) { *n = 1; return 0; }
R cuDeviceGet(int *d, int i) { *d = 40 + i; return 0; }
R cuDeviceGetName(char *s, int n, int d) { strncpy(s, d == 40 ? "C" : "?", n); return 0; }
R cuDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 12 : a == 76 ? 0 : -1; return 0; }
R cuDevicePrimaryCtxRetain(void **c, int d) { *c = (void *)0x7f0000000010; return 0; }
static void *current;
R cuCtxPushCurrent_v2(void *c) { current = c; return c != (void *)0x7f0000000010; }
R cuCtxPopCurrent_v2(void **c) { *c = current; current = 0; return 0; }
R cuMemAlloc_v2(void **p, size_t n) { return n > 1ul << 33 ? 2 : posix_memalign(p, 256, n); }
R cuMemFree_v2(void *p) { free(p); return 0; }
R cuMemcpyHtoDAsync_v2(void *d, void *s, size_t n, void *t) { memcpy(d, s, n); return t == 0; }
R cuMemcpyDtoHAsync_v2(void *d, void *s, size_t n, void *t) { memcpy(d, s, n); return t == 0; }
R cuMemcpyDtoDAsync_v2(void *d, void *s, size_t n, void *t) { memcpy(d, s, n); return t == 0; }
R cuStreamCreate(void **s, unsigned f) { *s = (void *)0x7f0000000020; return f != 1; }
R cuStreamSynchronize(void *s) { return s != (void *)0x7f0000000020; }
R cuStreamWaitEvent(void *s, void *e, unsigned f) { return e != (void *)0x7f0000000030 || f; }
R cuStreamDestroy_v2(void *s) { return s != (void *)0x7f0000000020; }
R cuEventCreate(void **e, unsigned f) { *e = (void *)0x7f0000000030; return f != 2; }
R cuEventRecord(void *e, void *s) { return s != (void *)0x7f0000000020; }
R cuEventDestroy_v2(void *e) { return e != (void *)0x7f0000000030; }
"""
"""The driver's functions over the host's memory; they fail for handles that are cut to 32 bits."""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a library made of C in the place of the driver."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    (tmp_path / "fake.c").write_text(SOURCE)
    made = tmp_path / "libcuda.so.1"
    subprocess.run(
        [compiler, "-w", "-shared", "-fPIC", "-o", made, tmp_path / "fake.c"], check=True
    )
    load = ctypes.CDLL
    monkeypatch.setattr(ctypes, "CDLL", lambda name: load(str(tmp_path / name)))


@pytest.mark.usefixtures("library")
def test_every_function_is_called_as_it_is_declared() -> None:
    gpu = cuda.Gpu(cuda.load_driver(), 0)
    assert (str(gpu), gpu.name, gpu.compute_capability) == ("cuda:0", "C", "12.0")
    stream, event = gpu.new_stream(), gpu.new_event()
    array = np.arange(12, dtype=np.float32).reshape(3, 4)
    first, second = gpu.allocate(array.nbytes), gpu.allocate(array.nbytes)
    assert first.address > 1 << 32 and first.address % cuda.ALIGNMENT == 0
    gpu.copy_in(first, array, stream.handle)
    gpu.copy(second.address, first.address, array.nbytes, stream.handle)
    gpu.record(event, stream.handle)
    gpu.wait(stream.handle, event)
    gpu.synchronize(stream.handle)
    copied = gpu.copy_out(second.address, (3, 4), array.dtype, stream.handle)
    np.testing.assert_array_equal(copied, array)
    with pytest.raises(PeltonError, match=r"CUDA failed: made up \(cuMemAlloc_v2 gave 2\)"):
        gpu.allocate(1 << 34)


def test_arrays_without_elements_and_without_dimensions_cross() -> None:
    gpu = cuda.Gpu(FakeDriver(), 0)
    stream = gpu.new_stream()
    for array in (np.zeros((0, 3), np.int8), np.array(7)):
        block = gpu.allocate(array.nbytes)
        gpu.copy_in(block, array, stream.handle)
        result = gpu.copy_out(block.address, array.shape, array.dtype, stream.handle)
        np.testing.assert_array_equal(result, array)


def test_memory_is_freed_with_the_last_reference() -> None:
    driver = FakeDriver()
    gpu = cuda.Gpu(driver, 0)
    blocks = [gpu.allocate(8), gpu.allocate(0)]
    assert len(driver.memory) == 2
    blocks.clear()
    gc.collect()
    assert driver.memory == {}


def test_missing_driver_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(DeviceError, match="this machine has no CUDA GPU, or no driver for it"):
        cuda.load_driver()
