import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "samples" / "two_devices.py"


def test_a_model_split_over_two_devices_gives_what_eager_gives(tmp_path: Path) -> None:
    command = [sys.executable, SCRIPT, "--width", "16"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Executable on local-task, local-task" in done.stdout
    assert done.stdout.count("equal to eager") == 3
