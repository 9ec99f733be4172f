"""A folder with a module of programs, and what the command line made of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pelton.cli import main

PROGRAMS = """
import time

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x):
        return torch.relu(self.linear(x))


class Counter(nn.Module):
    def __init__(self, start=0):
        super().__init__()
        self.register_buffer("count", torch.tensor(start))

    def forward(self, step):
        self.count += step
        return self.count.clone()


class Sized(nn.Module):
    def __init__(self, size):
        super().__init__()


def make_net():
    torch.manual_seed(0)
    return Net().eval()


def make_other_net():
    torch.manual_seed(1)
    return Net().eval()


def third_row(i):
    return torch.arange(10.0)[i] * 2


def make_training_net():
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))


def make_program():
    return torch.export.export(Net(), (torch.ones(2, 4),))


net = Net().eval()


def twice(x):
    return {"y": 2 * x, "pair": (x + 1, x.shape[0])}


def matmul(a, b):
    return a @ b


def scale(x, factor=2.0, *, shift=0):
    return x * factor + shift


def choose(inputs, n):
    return inputs["a"][0] - inputs["b"] * n


def ones(value=1):
    return torch.full((2,), value, dtype=torch.bfloat16)


def fails():
    raise RuntimeError("no\\nweights")


def sleeps():
    open("sleeping", "w").close()
    time.sleep(60)
"""


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the module `cli_programs`."""
    folder = tmp_path_factory.mktemp("programs")
    (folder / "cli_programs.py").write_text(PROGRAMS)
    return folder


@pytest.fixture
def folder(programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, empty but for `cli_programs`."""
    (tmp_path / "cli_programs.py").symlink_to(programs / "cli_programs.py")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="session")
def net(programs: Path) -> Iterator[Path]:
    """A folder with `net.mlirbc`, `net.irpa` and `net.vmfb`, made by the command line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(programs)
        arguments = ["cli_programs:make_net", "--input", "b=1..8x4xf32", "-o", "net.mlirbc"]
        assert main(["export", *arguments, "--parameters", "net.irpa"]) == 0
        assert main(["compile", "net.mlirbc", "-o", "net.vmfb"]) == 0
        yield programs
