"""Runs the child on mutations of a format, and starts it again where one ends it."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from .formats import BROKEN, FORMATS

ROOT = Path(__file__).parents[2]
SECONDS_FOR_A_FILE = 60
"""A file that is not read by then hangs (the machine may be busy)."""


@dataclass
class Findings:
    """What came of the mutations of a format.

    Attributes:
        outcomes: How many were `refused` and how many `right`.
        wrong: What is wrong, by the number of the mutation.
    """

    outcomes: dict[str, int] = field(default_factory=dict)
    wrong: dict[int, str] = field(default_factory=dict)


def fuzz(name: str, count: int, folder: Path, *, seed: int = 0, most_wrong: int = 20) -> Findings:
    """Read `count` mutations of a format; give up after `most_wrong` that are wrong."""
    form = {**FORMATS, **BROKEN}[name]
    form.sample(folder / f"sample{form.suffix}")
    found = Findings()
    done = 0
    while done < count and len(found.wrong) < most_wrong:
        (folder / "log").write_text("")
        ended = _run(name, seed, done, count - done, folder)
        lines = (folder / "log").read_text().splitlines()
        done = _read(lines, found, ended) + 1 if lines else count
        if not lines:
            found.wrong[-1] = ended
    return found


def _run(name: str, seed: int, first: int, count: int, folder: Path) -> str:
    """Run the child until it ends or hangs; return how it ended."""
    arguments = [name, str(seed), str(first), str(count), str(folder)]
    command = [sys.executable, "-m", "tests.fuzz.worker", *arguments]
    with open(folder / "errors", "w") as errors:
        child = subprocess.Popen(command, cwd=ROOT, stderr=errors, stdout=errors)
        while child.poll() is None:
            time.sleep(0.1)
            if time.time() - (folder / "log").stat().st_mtime > SECONDS_FOR_A_FILE:
                child.kill()
                child.wait()
                return "hangs"
    text = " ".join((folder / "errors").read_text().split())[-600:]
    return f"ends the process with {child.returncode}: {text}"


def _read(lines: list[str], found: Findings, ended: str) -> int:
    """Add a log to the findings; return the number of the last file."""
    open_ = -1
    for line in lines:
        number, outcome = line.split(" ", 1)
        if outcome == "start":
            open_ = int(number)
            continue
        if outcome.startswith("wrong"):
            found.wrong[int(number)] = outcome
        else:
            found.outcomes[outcome] = found.outcomes.get(outcome, 0) + 1
        if int(number) == open_:
            open_ = -1
    last = int(lines[-1].split(" ", 1)[0])
    if open_ >= 0:
        found.wrong[open_] = ended
    return last
