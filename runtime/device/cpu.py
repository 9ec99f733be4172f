"""CPU of this machine: how many cores may be used, its features and its identity."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..compat import cpuinfo_tool

WORKER_STACK_BYTES = 4 << 20
"""Stack size of each thread that runs programs on the CPU.

IREE's own default is 128 KiB; programs whose tiles need more crash with it.
"""


def available_cpus() -> int:
    """Return how many CPUs this process may use, which may be fewer than the machine has.

    Example:
        >>> 1 <= available_cpus()
        True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.lru_cache(maxsize=1)
def cpu_features() -> dict[str, bool]:
    """Return the CPU features that IREE's runtime can detect, and whether this CPU has them.

    The names are LLVM's (`avx2`, `dotprod`). Empty where the runtime's detection tool is missing.

    Example:
        >>> all(isinstance(has, bool) for has in cpu_features().values())
        True
    """
    try:
        tool = cpuinfo_tool()
        listed = subprocess.run([tool], capture_output=True, text=True, timeout=10, check=True)
    except (ImportError, OSError, subprocess.SubprocessError):
        return {}
    rows = (line.split() for line in listed.stdout.splitlines())
    return {row[0]: row[1] == "1" for row in rows if len(row) == 2}


_IDENTIFYING = (
    "vendor_id", "cpu family", "model", "model name", "stepping", "flags",
    "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features",
)  # fmt: skip
"""The rows of `/proc/cpuinfo` that identify a kind of CPU (x86, then ARM)."""


@functools.lru_cache(maxsize=1)
def cpu_identity() -> dict[str, str]:
    """Return what identifies this kind of CPU; code compiled for it runs on equal ones.

    Example:
        >>> "machine" in cpu_identity()
        True
    """
    found = {"machine": platform.machine(), "processor": platform.processor()}
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return {**found, **{name: str(has) for name, has in cpu_features().items()}}
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in _IDENTIFYING:
            found.setdefault(name.strip(), value.strip())
    return found


def missing_features(needed: Iterable[str]) -> list[str]:
    """Return those of `needed` that this CPU lacks.

    Features that the runtime cannot detect are not among them.

    Example:
        >>> missing_features([])
        []
    """
    here = cpu_features()
    return [name for name in needed if here.get(name) is False]
