import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from pelton import runtime

SAMPLE = Path(__file__).parents[2] / "samples" / "build_models.py"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the command line of `iree.build` makes of the sample."""
    folder = tmp_path_factory.mktemp("built")
    options = ["--output-dir", folder, "--iree-hal-target-device=cpu", "--width", "32"]
    done = subprocess.run(
        [sys.executable, "-m", "iree.build", SAMPLE, *options], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    listed = [Path(line) for line in done.stdout.splitlines() if line.startswith(str(folder))]
    assert {path.suffix for path in listed} == {".vmfb", ".irpa"}
    return folder


def found(folder: Path, pattern: str) -> Path:
    (path,) = folder.rglob(pattern)
    return path


@pytest.mark.parametrize("batch", [1, 5, 64])
def test_the_classifier_equals_eager(built: Path, batch: int) -> None:
    torch.manual_seed(0)
    eager = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)).eval()
    x = torch.randn(batch, 16)
    executable = runtime.load(found(built, "classifier*.vmfb"))
    torch.testing.assert_close(executable(x), eager(x), rtol=1e-4, atol=1e-5)


def test_the_encoder_equals_eager_with_the_weights_of_its_archive(built: Path) -> None:
    torch.manual_seed(0)
    eager = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    x = torch.randn(1, 8, 32)
    weights = found(built, "encoder_1.irpa")
    executable = runtime.load(found(built, "encoder*.vmfb"), parameters=weights)
    torch.testing.assert_close(executable(x), eager(x), rtol=1e-4, atol=1e-5)


def test_it_is_a_module_of_generators_too() -> None:
    spec = importlib.util.spec_from_file_location("build_models", SAMPLE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert str(module.classifier(8).signatures["main"]).startswith(
        "main(input: float32[batch, 16])"
    )
