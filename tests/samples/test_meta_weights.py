import json
import re
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "samples" / "meta_weights.py"


def test_program_runs_with_two_sets_of_weights(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--only", "tiny", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"\d\.\de-\d\d │ +yes │", done.stdout)) == 6
    files = {path.name for path in tmp_path.iterdir()}
    assert files == {"tiny.mlirbc", "tiny.vmfb", "tiny-0.irpa", "tiny-1.safetensors"}


def test_memory_of_an_export_stays_flat_as_the_weights_grow(tmp_path: Path) -> None:
    script = (
        f"import json, sys; sys.path.insert(0, {str(SCRIPT.parent)!r}); import meta_weights as m\n"
        "from pathlib import Path\n"
        "for name, width in (('small', 256), ('large', 16384)):\n"
        "    m.CONFIGS[name] = m.Config(2, width, 3 * width, width // 64, 4, 32_000)\n"
        "    print(json.dumps(m.measure(name, Path(sys.argv[1]))))"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    small, large = map(json.loads, done.stdout.splitlines())
    assert large["weights"] > 15 << 30
    assert large["peak"] - small["peak"] < 32 << 20
