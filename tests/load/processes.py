"""What a process holds, from `/proc`; imported by children too, so it needs nothing else."""

from __future__ import annotations

import gc
import os
from pathlib import Path


def resident_bytes() -> int:
    """Return how much memory of this process is resident."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no VmRSS")


def open_files() -> int:
    """Return how many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


def threads() -> int:
    """Return how many threads this process has."""
    return len(os.listdir("/proc/self/task"))


def mapped_files() -> int:
    """Return how many `.vmfb` files this process has mapped."""
    return Path("/proc/self/maps").read_text().count(".vmfb")


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *descendants(child)]
    return found


def alive(pid: int) -> bool:
    """Tell whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def settle() -> None:
    """Free what only waits to be freed."""
    gc.collect()
