"""The report of a benchmark, and its JSON form."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch

FORMAT = 1
"""Version of the JSON form. 1: the first."""

ABSENT, FAILED, MEASURED = "absent", "failed", "measured"
"""What became of a runner."""


@dataclass
class Row:
    """One way of running the program.

    Attributes:
        runner: Its name.
        status: `measured`, `absent` (not possible here) or `failed`.
        reason: Why it is absent or failed.
        seconds: What each stage of the cold start took: `capture`, `compile`, `first call`.
        milliseconds: What each timed call took.
        processor_milliseconds: Time of all processors for one call, the median of the turns.
        peak_bytes: The largest growth of the process's memory until the first call was done.
        compiler_peak_bytes: The largest memory of a compiler that ran in a process of its own.
        resident_bytes: The growth of the process's memory that stayed.
        artifact_bytes: The size of the file that was made; None where none was.
        difference: The largest absolute difference from eager's results.
        is_right: Whether that is within the tolerance: 0.001 relative and absolute for floats,
            none for integers.
        weights: A checksum of the weights that the process made.
        notes: What the compiler gave up.
    """

    runner: str
    status: str = MEASURED
    reason: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    milliseconds: list[float] = field(default_factory=list)
    processor_milliseconds: float | None = None
    peak_bytes: int | None = None
    compiler_peak_bytes: int | None = None
    resident_bytes: int | None = None
    artifact_bytes: int | None = None
    difference: float | None = None
    is_right: bool | None = None
    weights: int | None = None
    notes: list[str] = field(default_factory=list)

    def percentile(self, percent: float) -> float:
        """Return a percentile of the calls in milliseconds.

        Example:
            >>> Row("eager", milliseconds=[1.0, 2.0, 9.0]).percentile(50)
            2.0
        """
        return float(np.percentile(self.milliseconds, percent))

    @property
    def calls_per_second(self) -> float:
        """The throughput of one caller, from the median."""
        return 1e3 / self.percentile(50)


@dataclass
class Report:
    """A program measured by several runners.

    Attributes:
        program: What was measured.
        inputs: Its inputs, as they were given.
        settings: How: threads, seconds, seed, device.
        rows: One for each runner.
        machine: What it ran on.
    """

    program: str
    inputs: Sequence[str]
    settings: Mapping[str, Any]
    rows: list[Row]
    machine: Mapping[str, Any] = field(default_factory=lambda: describe_machine())

    @property
    def measured(self) -> list[Row]:
        """The rows with numbers."""
        return [row for row in self.rows if row.status == MEASURED]

    def speed_of(self, row: Row) -> float | None:
        """Return how many times as fast as eager a row is."""
        eager = next((other for other in self.measured if other.runner == "eager"), None)
        return eager.percentile(50) / row.percentile(50) if eager else None

    def to_json(self) -> str:
        """Return the report, with medians and percentiles, and each single time.

        Example:
            >>> report = Report("zoo:net", [], {}, [Row("cuda", "absent", "no CUDA device")])
            >>> json.loads(report.to_json())["rows"][0]["reason"]
            'no CUDA device'
        """
        rows = []
        for row in self.rows:
            stated = asdict(row)
            if row.status == MEASURED:
                stated |= {f"p{p}_milliseconds": row.percentile(p) for p in (10, 50, 90)}
                stated |= {"calls_per_second": row.calls_per_second, "speed": self.speed_of(row)}
            rows.append(stated)
        stated = {"format": FORMAT, "program": self.program, "inputs": list(self.inputs)}
        stated |= {"settings": dict(self.settings), "machine": dict(self.machine), "rows": rows}
        return json.dumps(stated, indent=1)


def describe_machine() -> dict[str, Any]:
    """Return what a reader must know of the machine to place its numbers.

    Example:
        >>> "processors" in describe_machine()
        True
    """
    name = platform.processor()
    try:
        with open("/proc/cpuinfo") as file:
            name = next(line.split(":")[1].strip() for line in file if "model name" in line)
    except (OSError, StopIteration):
        pass
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    return {
        "processor": name,
        "processors": os.cpu_count(),
        "gpu": gpu,
        "load": round(os.getloadavg()[0], 2),
        "torch": torch.__version__,
    }


_TOLERANCES = {"f8": (1e-3, 1e-3), "c8": (1e-3, 1e-3), "c16": (1e-3, 1e-3)}
"""Relative and absolute tolerance of results; integers and bools are equal or wrong."""


def compare(given: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> tuple[float, bool]:
    """Return the largest difference of results from those of eager, and whether it is small.

    Args:
        given: The results of a runner.
        expected: Those of eager.

    Example:
        >>> compare([np.ones(2)], [np.array([1.0, 1.5])])
        (0.5, False)
        >>> compare([np.ones(2)], [np.ones(3)])
        (inf, False)
    """
    if [array.shape for array in given] != [array.shape for array in expected]:
        return float("inf"), False
    largest, right = 0.0, True
    for ours, theirs in zip(given, expected, strict=True):
        if ours.size == 0:
            continue
        kind = f"{theirs.dtype.kind}{theirs.dtype.itemsize}"
        relative, absolute = _TOLERANCES.get(kind, (0.0, 0.0))
        with np.errstate(invalid="ignore"):
            gap = np.abs(ours.astype(np.complex128) - theirs.astype(np.complex128))
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        gap = np.where(same, 0.0, np.where(np.isnan(gap), np.inf, gap))
        largest = max(largest, float(gap.max()))
        right &= bool(np.allclose(ours, theirs, relative, absolute, equal_nan=True))
    return largest, right
