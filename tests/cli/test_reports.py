"""Reports of a dry run: what is refused comes first and says why; nothing is read as markup."""

from __future__ import annotations

import json

import pytest

from pelton.aot.spec.errors import SourceLocation
from pelton.aot.targets import FunctionReport
from pelton.aot.targets.base import Refusal
from pelton.cli.reports import print_reports, report_to_json

Capture = pytest.CaptureFixture[str]

REFUSED = FunctionReport(
    "main[0]",
    {"aten.add.Tensor": 3, "aten.sort": 2},
    (
        Refusal("aten.sort", "keys of [bool] have no order", SourceLocation("net.py", 7)),
        Refusal("util.call", "is not of torch"),
    ),
)
TAKEN = FunctionReport(
    "[bold]f", {"aten.mm": 1}, (), 12, ("default: [n]=1..8",), {"weights": 2_000_000, "state": 0}
)


def lines(capsys: Capture, *reports: FunctionReport) -> list[str]:
    print_reports(reports)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]


def test_what_is_not_taken_comes_first_with_place_and_reason(capsys: Capture) -> None:
    found = lines(capsys, REFUSED)
    assert found[0] == "main[0]: not taken"
    rows = [line.split() for line in found[3:]]
    assert rows == [
        "aten.sort 2 net.py:7: keys of [bool] have no order".split(),
        "util.call is not of torch".split(),
        "aten.add.Tensor 3".split(),
    ]


def test_what_is_taken_is_told_with_its_size(capsys: Capture) -> None:
    found = lines(capsys, TAKEN)
    assert found[0] == "[bold]f: taken"
    assert found[-3:] == [
        "  profile default: [n]=1..8",
        "  12 layers before fusion",
        "  memory at the largest sizes: weights 2.0 MB, state 0 bytes",
    ]


def test_facts_that_are_not_known_are_left_out(capsys: Capture) -> None:
    text = "\n".join(lines(capsys, FunctionReport("f", {}, (), 0)))
    assert "  0 layers before fusion" in text
    assert "memory" not in text
    assert "profile" not in text
    assert lines(capsys) == []


def test_a_report_is_what_json_has() -> None:
    told = json.loads(json.dumps([report_to_json(REFUSED), report_to_json(TAKEN)]))
    assert [each["supported"] for each in told] == [False, True]
    assert told[0]["refusals"] == [
        {"operator": "aten.sort", "reason": "keys of [bool] have no order", "location": "net.py:7"},
        {"operator": "util.call", "reason": "is not of torch", "location": None},
    ]
    assert told[0]["layers"] is None
    assert told[1]["profiles"] == ["default: [n]=1..8"]
    assert told[1]["memory_bytes"] == {"weights": 2_000_000, "state": 0}
