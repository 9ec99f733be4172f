import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "samples" / "prefill_decode.py"


def test_programs_saved_by_one_process_and_compiled_by_another_give_the_tokens_of_eager(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--tokens", "6", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "prefill, decode, length: 65 tensors shared; 13 tokens read" in done.stdout
    assert "token by token equal" in done.stdout
    (archive,) = tmp_path.glob("gpt-*.safetensors")
    assert {path.name for path in tmp_path.iterdir()} == {"gpt.json", "gpt.vmfb", archive.name}
