"""Reports of a verification: the verdict, the worst comparison, the table, the error."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from pelton.aot.spec.errors import SourceLocation
from pelton.aot.verify.difference import Difference
from pelton.aot.verify.report import Comparison, FirstDifference, NumericsError, Report
from pelton.aot.verify.sizes import SizeCase
from pelton.aot.verify.values import InputPattern


def comparison(absolute: float = 0.0, problem: str = "", result: str = "result") -> Comparison:
    apart = Difference(absolute=absolute, relative=absolute, problem=problem)
    return Comparison("main", SizeCase("min", {"n": 2}), InputPattern("random"), result, apart)


def test_a_report_without_comparisons_passes() -> None:
    report = Report("a.vmfb", "eager")
    assert report.passed
    assert report.worst is None
    assert report.check() is report


def test_a_failure_is_worse_than_a_larger_difference_within_tolerance() -> None:
    far, wrong = comparison(absolute=5.0), comparison(absolute=0.1, problem="off by more than 0.01")
    report = Report("a.vmfb", "eager", [far, wrong])
    assert report.worst is wrong
    assert not report.passed


def test_the_error_counts_the_failures_and_has_the_report() -> None:
    report = Report("a.vmfb", "eager", [comparison(), comparison(0.5, "off by more than 0.01")])
    with pytest.raises(NumericsError, match=r"a\.vmfb differs from eager in 1 of 2 comparisons"):
        report.check()
    try:
        report.check()
    except NumericsError as error:
        assert error.report is report
        assert isinstance(error, ArithmeticError)


def test_the_first_operator_that_differs_is_part_of_the_error() -> None:
    first = FirstDifference(
        "aten.tanh.default",
        SourceLocation("model.py", 7),
        Difference(absolute=0.5, relative=0.25, problem="off"),
        "compile",
        Path("reproduce.py"),
    )
    report = Report("a.vmfb", "eager", [comparison(0.5, "off")], (), first)
    with pytest.raises(NumericsError, match=r"aten\.tanh\.default \(at model\.py:7\), by 0\.5"):
        report.check()
    assert str(report).endswith("reproducer: reproduce.py")


def test_without_a_reproducer_the_operator_is_right_alone() -> None:
    first = FirstDifference("aten.add.Tensor", None, Difference(problem="off"), "export")
    assert str(first).endswith("after the export; alone it is right")
    assert "(at" not in str(first)


def test_the_table_has_the_worst_call_of_each_result() -> None:
    found = [comparison(0.1), comparison(0.3), comparison(0.2, result="result[1]")]
    lines = str(Report("a", "b", found, ("integers in 0..9",))).splitlines()
    assert lines[0] == "a against b: agrees, 3 comparisons"
    assert lines[1].split() == ["function", "sizes", "result", "absolute", "relative", "inputs"]
    assert len(lines) == 5
    assert "0.3" in lines[2]
    assert "result[1]" in lines[3]
    assert lines[4] == "note: integers in 0..9"


def test_a_difference_that_is_nan_is_told() -> None:
    found = comparison(math.nan, "is NaN where the reference is not")
    assert "is NaN where the reference is not" in str(found)
    assert not found.passed
