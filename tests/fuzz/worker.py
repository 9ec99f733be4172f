"""The child: reads mutated files one after the other and writes what came of each.

Each line of the log is a number and an outcome: `start` before a file is read, then `refused`,
`right`, or what is wrong. Where the log ends with `start`, that file ended the process.
"""

from __future__ import annotations

import random
import resource
import sys
import warnings
from pathlib import Path
from typing import Any

from .formats import BROKEN, FORMATS, Format

ALLOWANCE_BYTES = 6 << 20
"""What reading may take beyond twice the file: code loaded on the way, stacks of threads."""

WARM_UP = 3


def main(name: str, seed: int, first: int, count: int, folder: Path) -> None:
    """Read the mutations from number `first` on."""
    warnings.simplefilter("ignore")
    form = {**FORMATS, **BROKEN}[name]
    sample = (folder / f"sample{form.suffix}").read_bytes()
    path = folder / "here" / f"file{form.suffix}"
    path.parent.mkdir(exist_ok=True)
    for _ in range(WARM_UP):
        path.write_bytes(sample)
        form.read(path)
    _limit_memory(8 << 30)
    with open(folder / "log", "a", buffering=1) as log:
        for number in range(first, first + count):
            data = form.mutate(sample, random.Random(f"{name} {seed} {number}"))
            path.write_bytes(data)
            log.write(f"{number} start\n")
            log.write(f"{number} {_outcome(form, path, len(data))}\n")
            for other in path.parent.iterdir():
                if other != path:
                    log.write(f"{number} wrong: wrote {other.name}\n")
                    other.unlink()


def _outcome(form: Format, path: Path, size: int) -> str:
    from pelton.runtime.errors import PeltonError

    _reset_peak()
    before = _memory("VmRSS")
    try:
        found = form.read(path)
    except PeltonError as error:
        outcome = "refused" if path.name in str(error) else f"wrong: no file is named in: {error}"
    except BaseException as error:
        text = " ".join(str(error).split())[:200]
        return f"wrong: {type(error).__name__}: {text}"
    else:
        outcome = "right" if form.right is None or form.right(found) else f"wrong: gives {found}"
    used = _memory("VmHWM") - before
    if used > 2 * size + ALLOWANCE_BYTES:
        return f"wrong: took {used} bytes for {size}"
    return " ".join(outcome.split())


def _limit_memory(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_memory("VmSize") + size, resource.RLIM_INFINITY))


def _reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _memory(key: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) << 10
    raise AssertionError(key)


if __name__ == "__main__":
    arguments: list[Any] = sys.argv[1:]
    main(arguments[0], *map(int, arguments[1:4]), Path(arguments[4]))
