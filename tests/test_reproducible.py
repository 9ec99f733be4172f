"""The same program gives the same bytes, in other folders and with other hash seeds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import torch

from pelton import aot


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
        self.register_buffer("seen", torch.zeros(64))

    def forward(self, x):
        y = self.layers(x)
        self.seen.add_(y.sum(0))
        return {"y": y, **{name: y.sum() for name in ("a", "b", "c")}}


rows = aot.InputInfo((aot.NamedDimension("rows", 1, 2, 4), 64), torch.float32)
torch.manual_seed(0)
# A module without a line of the user's, and one with.
bare = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64))
for name, module in (("bare", bare), ("net", Net())):
    aot.export(module, args=[rows]).compile(f"{name}.vmfb", cache_dir=None)
    out = aot.export(module, args=[rows], external_parameters=True)
    out.save_mlir(f"{name}.mlirbc")
    out.save_mlir(f"{name}.mlir")
    out.save_parameters(f"{name}.irpa")
    out.save_parameters(f"{name}.safetensors")
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two folders with what one program wrote there."""
    script = tmp_path_factory.mktemp("program") / "program.py"
    script.write_text(PROGRAM)
    folders = []
    for seed in ("1", "2"):
        folder = tmp_path_factory.mktemp("run" * int(seed))
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, str(script)], cwd=folder, env=environment, check=True)
        folders.append(folder)
    return folders


@pytest.mark.parametrize("kind", ["mlirbc", "mlir", "vmfb", "irpa", "safetensors"])
def test_files_are_equal_byte_by_byte(kind: str, runs: list[Path]) -> None:
    first, second = runs
    names = [f"{name}.{kind}" for name in ("bare", "net")]
    assert [(first / name).read_bytes() == (second / name).read_bytes() for name in names] == [
        True,
        True,
    ]
