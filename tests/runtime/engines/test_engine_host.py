"""Engine host: the log of errors of an engine library."""

from __future__ import annotations

from pelton.runtime.engines.engine_host import EngineLog


def test_errors_are_appended_to_one_message() -> None:
    log = EngineLog()
    assert log.reason() == ""
    log.add("first\n  line")
    log.add("second")
    assert log.reason() == ": first line; second"
    assert log.reason() == ""


def test_only_the_last_errors_are_stored() -> None:
    log = EngineLog()
    for number in range(9):
        log.add(f"error {number}")
    assert log.reason() == ": error 5; error 6; error 7; error 8"


def test_long_errors_are_cut() -> None:
    log = EngineLog()
    log.add("x" * 5000)
    assert len(log.reason()) == 600
