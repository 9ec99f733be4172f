import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "samples" / "fused_operator.py"


def test_an_operator_in_mlir_gives_what_pytorch_gives(tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, "--width", "16"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("equal to PyTorch") == 4
