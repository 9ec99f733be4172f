import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

SCRIPT = Path(__file__).parents[2] / "samples" / "vision_pipeline.py"


def test_all_ways_give_eager_scores(tmp_path: Path) -> None:
    arguments = ["--small", "--seconds", "0.1", "--target", "cpu", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for way in ("eager", "torch.compile", "one artifact", "both"):
        assert re.search(rf"{way} .*x .*\de-\d\d|{way} .*x .*0.0e\+00", done.stdout), done.stdout
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"scorer.vmfb", "pipeline.vmfb", "vision_pipeline.png"} <= files
