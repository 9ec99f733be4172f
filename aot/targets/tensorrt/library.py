"""The library that builds engines: TensorRT or TensorRT-RTX, which have one Python interface."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import importlib.util
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch

from pelton.runtime.errors import DeviceError, MissingDependencyError

from ...spec.errors import ExportError

Flavor = Literal["rtx", "tensorrt"]
"""The two libraries, by the names that users give."""

FLAVORS: dict[Flavor, tuple[str, str]] = {
    "rtx": ("tensorrt_rtx", "TensorRT-RTX"),
    "tensorrt": ("tensorrt", "TensorRT"),
}
"""The Python module of each flavour, and what it is called."""

RTX_COMPUTE_CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "12.0", "12.1")
"""The GPUs that TensorRT-RTX 1.7 builds for, whatever GPU the machine has."""

RTX_DEFAULT_CAPABILITIES = RTX_COMPUTE_CAPABILITIES[1:]
"""Those that an engine runs on by default: 7.5 has no float32 matrix products."""

_LOCK = threading.RLock()
"""The library has one logger for a process, so one build runs at a time."""


class Log:
    """What the library said during a build.

    Attributes:
        lines: Warnings and errors in order, each with its severity: `WARNING: …`.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []

    @property
    def errors(self) -> list[str]:
        """The errors, without their severity."""
        marks = ("ERROR: ", "INTERNAL_ERROR: ")
        return [line.partition(": ")[2] for line in self.lines if line.startswith(marks)]

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(self.lines)


@dataclass(frozen=True)
class Library:
    """An installed library.

    Attributes:
        flavor: Which it is.
        module: Its Python module.
        version: Its version.
    """

    flavor: Flavor
    module: Any
    version: str

    @contextlib.contextmanager
    def logging(self) -> Iterator[tuple[Any, Log]]:
        """Yield a logger for builders and parsers, and what it logs in the block."""
        with _LOCK:
            logger = _logger(self.module)
            log = logger.sink = Log()
            try:
                yield logger, log
            finally:
                logger.sink = Log()


def find_flavor(asked: str) -> Flavor:
    """Return the flavour to build with.

    Args:
        asked: `rtx`, `tensorrt`, or `auto`: TensorRT where it and a GPU are there, as it builds for
            the GPU of the machine only; else TensorRT-RTX.

    Raises:
        MissingDependencyError: It is not installed.
    """
    if asked == "auto":
        both = _is_installed("tensorrt") and _is_installed("rtx")
        if not _is_installed("rtx") and not _is_installed("tensorrt"):
            raise MissingDependencyError(
                "target 'tensorrt' needs TensorRT-RTX or TensorRT, and neither is installed: "
                "pip install 'pelton[rtx]'"
            )
        prefers_rtx = not torch.cuda.is_available() if both else _is_installed("rtx")
        return "rtx" if prefers_rtx else "tensorrt"
    flavor: Flavor = "rtx" if asked == "rtx" else "tensorrt"
    if not _is_installed(flavor):
        package, called = FLAVORS[flavor]
        raise MissingDependencyError(
            f"flavor {flavor!r} needs {called}, and {package} is not installed: "
            f"pip install 'pelton[{flavor}]'"
        )
    return flavor


def open_library(flavor: Flavor) -> Library:
    """Return the library of a flavour.

    Raises:
        MissingDependencyError: It is installed and cannot be loaded.
        DeviceError: It needs a GPU to build with, and there is none.
    """
    package, called = FLAVORS[flavor]
    if flavor == "tensorrt" and not torch.cuda.is_available():
        raise DeviceError(
            "flavor 'tensorrt' builds on the GPU that engines are for, and this machine has none; "
            "build there, or take flavor 'rtx', which builds anywhere"
        )
    try:
        module = importlib.import_module(package)
    except (ImportError, OSError) as error:
        raise MissingDependencyError(
            f"{called} cannot be loaded: {error}; install it again: pip install 'pelton[{flavor}]'"
        ) from error
    return Library(flavor, module, module.__version__)


def installed_version(flavor: Flavor) -> str:
    """Return the version of a library without loading it."""
    return importlib.metadata.version(FLAVORS[flavor][0])


def compute_capabilities(flavor: Flavor, asked: tuple[str, ...]) -> tuple[str, ...]:
    """Return the GPUs that an engine is for.

    Args:
        flavor: The library.
        asked: What the user asked for; empty: the default.

    Raises:
        ExportError: The library cannot build for one of them; lists those that it can.
    """
    known: tuple[str, ...]
    default: tuple[str, ...]
    if flavor == "rtx":
        known, default = RTX_COMPUTE_CAPABILITIES, RTX_DEFAULT_CAPABILITIES
    else:
        major, minor = torch.cuda.get_device_capability() if torch.cuda.is_available() else (0, 0)
        known = default = (f"{major}.{minor}",)
    unknown = [capability for capability in asked if capability not in known]
    if unknown:
        raise ExportError(
            f"compute_capabilities: {FLAVORS[flavor][1]} cannot build for {', '.join(unknown)} "
            f"here; it can for {', '.join(known)}"
        )
    return asked or default


def _is_installed(flavor: Flavor) -> bool:
    return importlib.util.find_spec(FLAVORS[flavor][0]) is not None


@functools.cache
def _logger(module: Any) -> Any:
    """Return the one logger of a library; it keeps the first that it is given."""

    class Logger(module.ILogger):  # type: ignore[misc]  # known when it runs
        def __init__(self) -> None:
            module.ILogger.__init__(self)
            self.sink = Log()

        def log(self, severity: Any, message: str) -> None:
            if severity <= module.ILogger.Severity.WARNING:
                self.sink.lines.append(f"{severity.name}: {' '.join(message.split())}")

    return Logger()
