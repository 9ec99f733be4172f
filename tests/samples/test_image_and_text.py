import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")

SCRIPT = Path(__file__).parents[2] / "samples" / "image_and_text.py"


def test_small_networks_give_eager_results_and_a_plot(tmp_path: Path) -> None:
    arguments = ["--small", "--seconds", "0.01", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"\d\.\d\de?.*x │ +\d\.\de-\d\d │", done.stdout)) == 6
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"classifier.vmfb", "transformer.mlirbc", "transformer.irpa", "latency.png"} <= files


def test_numbers_that_differ_fail(tmp_path: Path) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import image_and_text as sample\n"
        "row = sample.Measured('net', 1, eager_ms=2, compiled_ms=1, difference=9, equal=False)\n"
        "sample.build, sample.measure = lambda *args: None, lambda *args: [row]\n"
        "sys.exit(sample.main(['--small', '--out', sys.argv[1]]))"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "The compiled results differ from eager PyTorch." in done.stdout
