"""A short run over every format; `make fuzz` does 10,000 of each."""

from pathlib import Path

import pytest

from .driver import fuzz
from .formats import FORMATS

COUNTS = dict.fromkeys(FORMATS, 150) | {"mlir": 20, "mlirbc": 60}
"""Fewer where a file without a checksum is first read in a child process."""


@pytest.mark.parametrize("name", FORMATS)
def test_mutated_files_are_refused_or_right(name: str, tmp_path: Path) -> None:
    found = fuzz(name, COUNTS[name], tmp_path)
    assert found.wrong == {}
    assert sum(found.outcomes.values()) == COUNTS[name]
    assert found.outcomes["refused"] > 0


def test_the_driver_sees_all_that_can_be_wrong(tmp_path: Path) -> None:
    found = fuzz("broken", 25, tmp_path, most_wrong=25)
    kinds = {what.split(" for ")[0].split(": s")[0] for what in found.wrong.values()}
    took = {kind for kind in kinds if kind.startswith("wrong: took ")}
    assert len(took) >= 1
    assert kinds - took == {
        "wrong: ValueError: unexpected",
        "ends the process with -11: ",
        "wrong: wrote elsewhere",
    }
    assert found.outcomes["right"] > 0
