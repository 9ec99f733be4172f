"""Programs to load: one without state, one with, each compiled once in a session."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pelton import aot


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 16)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.linear(x)
        return {"y": torch.relu(hidden).sum(-1), "hidden": hidden}


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(1, dtype=torch.int64))

    def forward(self, step: torch.Tensor) -> torch.Tensor:
        self.total.add_(step)
        return self.total.clone()


@pytest.fixture(scope="session")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("load") / "net.vmfb"
    rows = aot.InputInfo((aot.NamedDimension("rows", 0, 16, 300), 8), torch.float32)
    aot.export(Net(), args=[rows]).compile(path)
    return path


@pytest.fixture(scope="session")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("load") / "counter.vmfb"
    aot.export(Counter(), args=(torch.zeros(1, dtype=torch.int64),)).compile(path)
    return path
