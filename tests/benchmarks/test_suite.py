"""The suite that the project's speed is judged by: its programs run, and compile for CUDA."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(FOLDER))
import suite  # noqa: E402


@pytest.mark.parametrize("case", suite.SUITE, ids=lambda case: case.name)
def test_program_runs_and_is_the_same_each_time(case: suite.Case) -> None:
    results = []
    for _ in range(2):
        torch.manual_seed(0)
        with torch.inference_mode():
            result = getattr(suite, case.name)()(*case.tensors())
        results.append([result] if isinstance(result, torch.Tensor) else list(result))
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-5)
    assert all(leaf.isfinite().all() for leaf in results[0])


def test_a_program_compiles_for_cuda_without_a_gpu(tmp_path: Path) -> None:
    script = FOLDER / "cuda_artifacts.py"
    arguments = [str(tmp_path), "gpt_decode", "--arch", "sm_60", "sm_120"]
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads((tmp_path / "cuda_artifacts.json").read_text())
    assert set(told["gpt_decode"]) == {"sm_60", "sm_120"}
    assert (tmp_path / "sm_120" / "gpt_decode.vmfb").stat().st_size > 1e6


def test_dispatches_of_a_program_are_timed() -> None:
    import dispatches

    (case,) = (case for case in suite.SUITE if case.name == "detector")
    microseconds, spent = dispatches.profile(case, 3)
    assert any(kind.startswith("conv_") for kind in spent)
    assert 0 < sum(spent.values()) < microseconds * 1.5
