"""Running cases in child processes, so that a crash, a hang or a leak is a result like others."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

MEMORY_BYTES = 24 << 30


@dataclass(frozen=True)
class Outcome:
    """What became of a case in one of its variants.

    Attributes:
        status: `ok`, `wrong` (numbers differ), `refused` (an error of ours names the reason),
            `failed` (any other error), `crash`, `timeout`, or `unmeasured`.
        stage: How far it got: `eager`, `export`, `compile`, `load`, `run` or `compare`.
        reason: Why, in words.
    """

    status: str
    stage: str = ""
    reason: str = ""


Found = tuple[str, Outcome]
"""A variant and what became of it."""

Case = Callable[[Sequence[str]], Iterator[Found]]
"""Takes the variants to run, and yields their outcomes in that order."""


def in_children(case: Case, variants: Sequence[str], timeout_s: float) -> dict[str, Outcome]:
    """Run variants of a case in a forked child; where that ends early, the rest in another.

    Args:
        case: What to run. The parent must not have started threads of torch or of a compiler.
        variants: The variants to run.
        timeout_s: When to kill a child, counted from its last outcome.
    """
    found: dict[str, Outcome] = {}
    while left := [variant for variant in variants if variant not in found]:
        got, end = _in_child(case, left, timeout_s)
        found |= got
        if end is not None:
            found[next(variant for variant in left if variant not in got)] = end
    return found


def _in_child(
    case: Case, variants: Sequence[str], timeout_s: float
) -> tuple[dict[str, Outcome], Outcome | None]:
    """Return the outcomes that a child gave, and of which kind its end was, if it came early."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_and_exit(case, variants, writing)
    os.close(writing)
    found: dict[str, Outcome] = {}
    in_time = True
    with os.fdopen(reading) as lines:
        while len(found) < len(variants):
            in_time = bool(select.select([lines], [], [], timeout_s)[0])
            line = lines.readline() if in_time else ""
            if not line:
                break
            variant, outcome = json.loads(line)
            found[variant] = Outcome(**outcome)
    if not in_time:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if len(found) == len(variants):
        return found, None
    if not in_time:
        return found, Outcome("timeout", "", f"longer than {timeout_s:.0f} s")
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    return found, Outcome("crash", "", f"the process ended by signal {number}")


def _run_and_exit(case: Case, variants: Sequence[str], writing: int) -> None:
    os.setpgid(0, 0)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    left = list(variants)
    try:
        for variant, outcome in case(variants):
            _say(writing, variant, outcome)
            left.remove(variant)
    except BaseException as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(frame.filename)}:{frame.lineno}"
        failed = Outcome("failed", "", f"{type(error).__name__} at {where}: {error}"[:400])
        _say(writing, left[0], failed)
    os._exit(0)


def _say(writing: int, variant: str, outcome: Outcome) -> None:
    line: list[Any] = [variant, asdict(outcome)]
    os.write(writing, json.dumps(line).encode() + b"\n")
