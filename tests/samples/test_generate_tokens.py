import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "samples" / "generate_tokens.py"


def test_the_compiled_loop_gives_the_tokens_of_eager(tmp_path: Path) -> None:
    arguments = ["--layers", "1", "--width", "32", "--tokens", "64", "--rounds", "1"]
    done = subprocess.run(
        [sys.executable, SCRIPT, *arguments], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "token by token equal" in done.stdout
    assert len(re.findall(r"\d x │", done.stdout)) == 2
