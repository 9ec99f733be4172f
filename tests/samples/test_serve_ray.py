import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ..processes import Mark

SAMPLE = Path(__file__).parents[2] / "samples" / "serve_ray.py"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed"
)


def test_concurrent_clients_get_the_answers_of_eager_from_batches(tmp_path: Path) -> None:
    mark = Mark()
    done = subprocess.run(
        [sys.executable, SAMPLE, "--clients", "8", "--requests", "32"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=mark.environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    calls = {int(size): int(n) for size, n in re.findall(r"│ (\d+) +│ (\d+) +│", done.stdout)}
    assert sum(size * n for size, n in calls.items()) == 32
    assert sum(calls.values()) < 32 and max(calls) <= 8
    difference = re.search(r"largest difference (\S+)", done.stdout)
    assert difference is not None and float(difference[1]) < 1e-4
    mark.assert_gone()
