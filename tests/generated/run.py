"""Generated programs by the thousand, in child processes: `make generated N=10000`.

`build/generated/` has a line of JSON for each program; a run goes on where the last one stopped.
Programs that are not right are printed; `--shrink SEED --kind KIND` reduces one to the steps that
it needs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from .check import quietly
from .programs import from_data, generate, shrink, to_data

_ROOT = Path(__file__).parents[2]
_BATCH = 20


def main() -> None:
    """Check programs that were not checked yet; print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="how many seeds, of both kinds")
    parser.add_argument("--kind", choices=("static", "dynamic"), action="append")
    parser.add_argument("--level", type=int)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--shrink", type=int, help="the seed of a program to make smaller")
    options = parser.parse_args()
    if options.child:
        _child()
        return
    for kind in options.kind or ("static", "dynamic"):
        if options.shrink is not None:
            _shrink(options.shrink, kind, options.level)
        else:
            _run(kind, options.count, options.level)


def _run(kind: str, count: int, level: int | None) -> None:
    name = kind if level is None else f"{kind}-{level}"
    file = _ROOT / "build" / "generated" / f"{name}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    done = {row["seed"] for row in rows}
    seeds = [seed for seed in range(count) if seed not in done]
    for start in range(0, len(seeds), _BATCH):
        batch = seeds[start : start + _BATCH]
        found = _checked(batch, kind, level)
        with open(file, "a") as out:
            for row in found:
                out.write(json.dumps(row) + "\n")
                if row["kind"] not in ("right", "untraced"):
                    print(kind, row["seed"], row["kind"], row["text"], flush=True)
        rows += found
    print(name, dict(Counter(row["kind"] for row in rows if row["seed"] < count)))


def _checked(seeds: list[int], kind: str, level: int | None) -> list[dict[str, Any]]:
    """Check programs in a child process; where that crashes, each in one of its own."""
    asked = json.dumps({"seeds": seeds, "dynamic": kind == "dynamic", "level": level})
    command = [sys.executable, "-m", "tests.generated.run", "--child"]
    try:
        done = subprocess.run(
            command, input=asked, capture_output=True, text=True, cwd=_ROOT, timeout=1800
        )
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        status, output = -1, ""
    if status == 0:
        rows: list[dict[str, Any]] = json.loads(output.splitlines()[-1])
        return rows
    if len(seeds) == 1:
        return [{"seed": seeds[0], "kind": "crashed", "text": f"ended with {status}"}]
    return [row for seed in seeds for row in _checked([seed], kind, level)]


def _child() -> None:
    asked = json.load(sys.stdin)
    programs = [generate(seed, dynamic=asked["dynamic"]) for seed in asked["seeds"]]
    outcomes = quietly(programs, level=asked["level"])
    rows = [
        {"seed": seed, "kind": outcome.kind, "text": outcome.text}
        for seed, outcome in zip(asked["seeds"], outcomes, strict=True)
    ]
    print(json.dumps(rows))


def _shrink(seed: int, kind: str, level: int | None) -> None:
    program = generate(seed, dynamic=kind == "dynamic")
    (outcome,) = quietly([program], level=level)
    smallest = shrink(
        program, lambda smaller: quietly([smaller], level=level)[0].kind == outcome.kind
    )
    print(quietly([smallest], level=level)[0])
    assert from_data(to_data(smallest)) == smallest
    for number, step in enumerate(smallest.steps, 3):
        print(f"  {number}: {step}")
    print(f"  results {smallest.results}, inexact {smallest.inexact}")


if __name__ == "__main__":
    main()
