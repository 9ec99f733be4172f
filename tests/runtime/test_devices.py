import concurrent.futures

import iree.runtime as iree
import pytest

from pelton import runtime
from pelton.runtime.devices import open_device, open_devices, reason_of
from pelton.runtime.errors import DeviceError


def test_processor_is_among_the_devices() -> None:
    assert {"local-task", "local-sync"} <= {device.uri for device in runtime.devices()}


def test_every_listed_device_can_be_opened() -> None:
    for device in runtime.devices():
        assert str(open_device(device.uri)) == device.uri
        assert device.name


@pytest.mark.parametrize(("alias", "uri"), [("cpu", "local-task"), ("cpu:0", "local-task:0")])
def test_alias_is_the_device_itself(alias: str, uri: str) -> None:
    assert open_device(alias) is open_device(uri)


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
    first, second, third = open_devices(["cpu", "local-task", "local-sync"])
    assert first is open_device("cpu")
    assert second.hal is not first.hal
    assert [str(device) for device in (second, third)] == ["local-task", "local-sync"]
    assert open_devices(["cpu", "cpu"]) == (first, second)


def test_one_misspelt_device_of_several_is_refused() -> None:
    with pytest.raises(DeviceError, match="unknown device 'gpu'"):
        open_devices(["cpu", "gpu"])


def test_index_beyond_the_devices_is_refused() -> None:
    with pytest.raises(DeviceError) as caught:
        open_device("cpu:7")
    assert str(caught.value) == "there is no device 'cpu:7': local-task has 1, counted from 0"


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
