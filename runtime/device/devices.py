"""Devices of IREE, each opened once per process.

IREE is imported when the first is opened: programs of other engines run without it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..compat import disable_leak_checker, interpreter_dict
from ..errors import DeviceError
from .cpu import WORKER_STACK_BYTES, available_cpus

ALIASES = {"rocm": "hip"}
"""The users' names of IREE's drivers; `cpu` is one of two drivers."""

DLPACK_TYPES = {"local-task": 1, "local-sync": 1, "cuda": 2, "vulkan": 7, "hip": 10}
"""DLPack's device type code by driver (`DLDeviceType` of dlpack.h)."""

_PROCESSOR = DLPACK_TYPES["local-task"]
_LOCK = threading.Lock()


def _until_exit(name: str) -> dict[str, Any]:
    """Return a dictionary that the interpreter frees last at exit.

    IREE's buffers do not own their device. Results that only the last garbage collection frees
    would use a device that is freed, if a module's globals owned it: those are cleared before the
    collection. The interpreter's own dictionary is cleared after it.

    Args:
        name: The name of the dictionary, which is created on first use.
    """
    found: dict[str, Any] = interpreter_dict().setdefault(name, {})
    return found


_OPENED: dict[str, Device] = _until_exit("pelton.runtime.device.devices")

_thread_count: int | None = None
"""The number of threads of `local-task`; None: one for each core."""


def set_thread_count(count: int) -> None:
    """Set the number of threads of programs on the CPU; the default is one for each core.

    Args:
        count: At least 1.

    Raises:
        DeviceError: `local-task` is open already with another number, or `count` is not a positive
            integer.

    Example:
        >>> set_thread_count(0)
        Traceback (most recent call last):
        ...
        pelton.runtime.errors.DeviceError: the number of threads must be at least 1, got 0
    """
    global _thread_count
    if type(count) is not int or count < 1:
        raise DeviceError(f"the number of threads must be at least 1, got {count!r}")
    with _LOCK:
        if any(uri.startswith("local-task") for uri in _OPENED) and count != _thread_count:
            raise DeviceError(
                "the threads of the CPU are started already; set their number before the first "
                "program is loaded"
            )
        _thread_count = count


def _driver_of(name: str) -> str:
    """Return IREE's driver of a name.

    A single thread is the caller's own (`local-sync`): the one thread of `local-task` would share
    its core with the caller, which does not sleep while it waits.
    """
    if name == "cpu":
        return "local-sync" if 1 in (_thread_count, available_cpus()) else "local-task"
    return ALIASES.get(name, name)


@dataclass(frozen=True)
class DeviceInfo:
    """A device that can be opened: `uri` is what `runtime.load(device=...)` takes."""

    uri: str
    name: str


@dataclass(frozen=True)
class Device:
    """An opened device. It stays open until the process ends, so that results outlive programs.

    Attributes:
        uri: Driver and index, such as `local-task` or `cuda:1`.
        hal: The `iree.runtime.HalDevice`.
        dlpack: DLPack's device type and index.
    """

    uri: str
    hal: Any
    dlpack: tuple[int, int]

    @property
    def is_cpu(self) -> bool:
        """Whether its memory is that of the host."""
        return self.dlpack[0] == _PROCESSOR

    def __str__(self) -> str:
        return self.uri


def open_device(uri: str) -> Device:
    """Open a device, or return it when it is open already.

    Args:
        uri: A driver of IREE with an optional index: `local-task` (the CPU, by threads of its
            own), `local-sync` (the CPU, by the caller's thread), `cuda:0`, `vulkan`, `hip`; or
            `cpu`, which is `local-task` unless only one core or thread may be used.

    Raises:
        DeviceError: The driver or device does not exist; names those that do.

    Example:
        >>> open_device("cpu").is_cpu, str(open_device("local-sync"))
        (True, 'local-sync')
    """
    name, colon, index = uri.partition(":")
    with _LOCK:
        return _open(_driver_of(name) + colon + index, uri)


def open_devices(uris: Sequence[str]) -> tuple[Device, ...]:
    """Open the devices of a program that runs on several.

    A CPU that is named several times is as many devices, each with threads of its own.

    Args:
        uris: As for `open_device`.

    Raises:
        DeviceError: The driver or device does not exist, or a device other than a CPU is named
            twice.

    Example:
        >>> first, second = open_devices(["cpu", "cpu"])
        >>> first.hal is second.hal, second.is_cpu
        (False, True)
    """
    opened: list[Device] = []
    for uri in uris:
        name, colon, index = uri.partition(":")
        driver_name = _driver_of(name)
        canonical = driver_name + colon + index
        number = sum(device.uri == canonical for device in opened)
        if number and DLPACK_TYPES.get(driver_name) != _PROCESSOR:
            raise DeviceError(f"device {uri!r} is named twice")
        with _LOCK:
            opened.append(_open(canonical, uri, number))
    return tuple(opened)


def _open(canonical: str, uri: str, number: int = 0) -> Device:
    """Return a device, which is opened on first use.

    Args:
        canonical: The driver and index.
        uri: The user's name of the device, for messages.
        number: Which one, of several devices of one URI.
    """
    key = f"{canonical}#{number}" if number else canonical
    if key not in _OPENED:
        _OPENED[key] = _create(canonical, uri)
    return _OPENED[key]


def _create(canonical: str, uri: str) -> Device:
    """Open the device of a canonical URI; `uri` is the user's name of it."""
    import iree.runtime as iree

    driver_name, _, index = canonical.partition(":")
    known = iree.query_available_drivers()
    if driver_name not in known:
        raise DeviceError(
            f"unknown device {uri!r}; known: cpu, {', '.join(sorted(known))}, "
            "each with an optional index as in cuda:1"
        )
    if index and not index.isdigit():
        raise DeviceError(f"device {uri!r}: the index after ':' must be a number")
    # torch.compile holds objects until the process ends, which the binding would print at exit.
    disable_leak_checker()
    if driver_name == "local-task":
        flags = [f"--task_worker_stack_size={WORKER_STACK_BYTES}"]
        if _thread_count is not None:
            flags.append(f"--task_topology_max_group_count={_thread_count}")
        iree.flags.parse_flags(*flags)
    try:
        driver = iree.get_driver(driver_name)
        available = driver.query_available_devices()
        if int(index or 0) >= max(len(available), 1):
            raise DeviceError(
                f"there is no device {uri!r}: {driver_name} has {len(available)}, counted from 0"
            )
        hal = (
            driver.create_device(available[int(index)]) if index else driver.create_default_device()
        )
    except DeviceError:
        raise
    except (RuntimeError, ValueError) as error:
        raise DeviceError(f"cannot open device {uri!r}: {reason_of(error)}") from error
    return Device(canonical, hal, (DLPACK_TYPES.get(driver_name, 1), int(index or 0)))


def devices() -> list[DeviceInfo]:
    """Return the devices of this machine that the installed runtime can open.

    Example:
        >>> "local-task" in [device.uri for device in devices()]
        True
    """
    import iree.runtime as iree

    found = []
    for driver_name in sorted(iree.query_available_drivers()):
        try:
            listed = iree.get_driver(driver_name).query_available_devices()
        except (RuntimeError, ValueError):
            continue  # the driver's library or hardware is missing
        for index, info in enumerate(listed):
            uri = driver_name if len(listed) == 1 else f"{driver_name}:{index}"
            found.append(DeviceInfo(uri, str(info.get("name") or driver_name)))
    return found


def reason_of(error: Exception) -> str:
    """Return the message of an error of IREE, without the positions in its own source.

    Example:
        >>> reason_of(RuntimeError("Error: c/iree/x.c:66: UNAVAILABLE; no such library"))
        'no such library'
    """
    text = " ".join(str(error).split())
    _, marker, after = text.partition("; ")
    return (after if marker else text)[:400] or repr(error)
