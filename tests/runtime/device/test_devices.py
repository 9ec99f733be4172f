"""Devices of IREE: names, threads and errors."""

import concurrent.futures
import subprocess
import sys

import iree.runtime as iree
import pytest

from pelton import runtime
from pelton.runtime.device.devices import open_device, open_devices, reason_of
from pelton.runtime.errors import DeviceError


def test_processor_is_among_the_devices() -> None:
    assert {"local-task", "local-sync"} <= {device.uri for device in runtime.devices()}


def test_every_listed_device_can_be_opened() -> None:
    for device in runtime.devices():
        assert str(open_device(device.uri)) == device.uri
        assert device.name


@pytest.mark.parametrize(("processors", "driver"), [(1, "local-sync"), (2, "local-task")])
@pytest.mark.parametrize("index", ["", ":0"])
def test_processor_is_called_with_threads_where_there_are_several(
    monkeypatch: pytest.MonkeyPatch, processors: int, driver: str, index: str
) -> None:
    module = sys.modules[open_device.__module__]
    monkeypatch.setattr(module, "available_cpus", lambda: processors)
    assert open_device(f"cpu{index}") is open_device(f"{driver}{index}")


@pytest.mark.parametrize(
    "limit",
    ["set_thread_count(1)", "os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])"],
)
def test_a_single_thread_is_that_of_the_caller(limit: str) -> None:
    imports = "import os; from pelton.runtime.device.devices import open_device, set_thread_count"
    code = f"{imports}; {limit}; print(open_device('cpu'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "local-sync\n"


def test_device_is_opened_once_for_all_threads() -> None:
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        opened = list(pool.map(open_device, ["local-sync"] * 16))
    assert len({id(device) for device in opened}) == 1


def test_unknown_device_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DeviceError) as caught:
        open_device("quantum:0")
    known = ", ".join(sorted(iree.query_available_drivers()))
    assert str(caught.value) == (
        f"unknown device 'quantum:0'; known: cpu, {known}, each with an optional index as in cuda:1"
    )


@pytest.mark.parametrize("uri", ["", ":0", "CPU", "cpu "])
def test_misspelt_device_is_refused(uri: str) -> None:
    with pytest.raises(DeviceError, match=f"unknown device '{uri}'"):
        open_device(uri)


@pytest.mark.parametrize("uri", ["cpu:x", "local-task:-1", "cpu:0:0"])
def test_index_must_be_a_number(uri: str) -> None:
    with pytest.raises(DeviceError) as caught:
        open_device(uri)
    assert str(caught.value) == f"device {uri!r}: the index after ':' must be a number"


def test_a_processor_named_twice_is_two_devices_that_stay_the_same() -> None:
    first, second, third = open_devices(["local-task", "local-task", "local-sync"])
    assert first is open_device("local-task")
    assert second.hal is not first.hal
    assert [str(device) for device in (second, third)] == ["local-task", "local-sync"]
    assert open_devices(["local-task", "local-task"]) == (first, second)


def test_one_misspelt_device_of_several_is_refused() -> None:
    with pytest.raises(DeviceError, match="unknown device 'gpu'"):
        open_devices(["cpu", "gpu"])


def test_index_beyond_the_devices_is_refused() -> None:
    with pytest.raises(DeviceError) as caught:
        open_device("local-sync:7")
    assert str(caught.value) == (
        "there is no device 'local-sync:7': local-sync has 1, counted from 0"
    )


def test_driver_without_its_library_is_refused_with_the_reason() -> None:
    class Missing:
        def query_available_devices(self) -> list[object]:
            raise RuntimeError("c/driver.c:66: UNAVAILABLE; library 'libgpu.so' not found")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(iree, "get_driver", lambda name: Missing())
        with pytest.raises(DeviceError) as caught:
            open_device("vulkan:3")
        assert str(caught.value) == "cannot open device 'vulkan:3': library 'libgpu.so' not found"
        assert runtime.devices() == []


def test_reason_of_an_empty_error_is_its_class() -> None:
    assert reason_of(ValueError()) == "ValueError()"


def test_reason_is_one_short_line() -> None:
    text = reason_of(RuntimeError("c/x.c:1: INTERNAL; first\n  second " + "x" * 1000))
    assert text.startswith("first second xxx")
    assert len(text) == 400
