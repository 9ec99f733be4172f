"""The worker process of `pelton bench`: only answers are on its output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import os
print("imported")

def add(x, y=None, *, n=1):
    print("called")
    os.write(1, b"written\\n")
    return x + y * n
"""


def test_what_the_program_prints_is_no_answer(tmp_path: Path) -> None:
    (tmp_path / "printing.py").write_text(PROGRAM)
    inputs = ["2xf32", "y:2xf32", "n:3"]
    job = {
        "program": "printing:add", "inputs": inputs, "runner": "eager", "folder": str(tmp_path),
        "threads": 1, "device": "cpu", "seed": 0,
    }  # fmt: skip
    lines = [json.dumps(job), '{"do": "prepare"}', '{"do": "results"}', '{"do": "prepare"}']
    done = subprocess.run(
        [sys.executable, "-m", "pelton.cli.bench_worker"],
        input="\n".join(lines), capture_output=True, text=True, cwd=tmp_path, check=True,
    )  # fmt: skip
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert not [answer["error"] for answer in answers if "error" in answer]
    assert [sorted(answer)[:1] for answer in answers] == [
        ["artifact_bytes"], ["file"], ["artifact_bytes"]
    ]  # fmt: skip
    assert "imported" in done.stderr
    assert "written" in done.stderr
