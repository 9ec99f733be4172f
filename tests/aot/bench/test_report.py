"""What is told of a measurement, and when results count as right."""

import json

import numpy as np
import pytest

from pelton.aot.bench import Report, Row
from pelton.aot.bench.report import compare


@pytest.fixture
def report() -> Report:
    rows = [
        Row("eager", seconds={"first call": 0.1}, milliseconds=[2.0, 2.0, 4.0], difference=0.0,
            is_right=True),
        Row("cpu", seconds={"capture": 0.5, "compile": 2.0, "first call": 0.1},
            milliseconds=[1.0, 1.0, 1.5], difference=1e-7, is_right=True),
        Row("cuda", "absent", "no CUDA device on this machine"),
        Row("inductor", "failed", "CompileError: <no> such thing " + 50 * "long "),
    ]  # fmt: skip
    return Report("zoo:net", ["2x4xf32"], {"threads": 1, "device": "cpu"}, rows)


def test_speed_is_that_of_the_medians(report: Report) -> None:
    told = {row["runner"]: row for row in json.loads(report.to_json())["rows"]}
    assert told["cpu"]["speed"] == 2.0
    assert told["cpu"]["p50_milliseconds"] == 1.0
    assert told["cpu"]["calls_per_second"] == 1000.0
    assert told["cuda"]["reason"] == "no CUDA device on this machine"
    assert "speed" not in told["cuda"]


@pytest.mark.parametrize(
    ("given", "expected", "difference", "right"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), 0.0, True),
        (np.array([1.0, 2.0]), np.array([1.0, np.nan]), np.inf, False),
        (np.array([np.inf]), np.array([np.inf]), 0.0, True),
        (np.array([1000.5]), np.array([1000.0]), 0.5, True),
        (np.array([1]), np.array([2]), 1.0, False),
        (np.array([True]), np.array([True]), 0.0, True),
        (np.zeros((0, 3)), np.zeros((0, 3)), 0.0, True),
    ],
)
def test_results_are_compared_element_by_element(
    given: np.ndarray, expected: np.ndarray, difference: float, right: bool
) -> None:
    assert compare([given], [expected]) == (difference, right)
