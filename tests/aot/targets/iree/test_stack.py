"""Programs whose tiles need more stack than IREE gives its threads by default."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from pelton import aot, runtime
from tests.programs import assert_equals_eager, through_files


class Head(nn.Module):
    """A 1x1 convolution over a large map with few channels, and the largest of these."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Conv2d(3, 16, 3, padding=1)
        self.out = nn.Conv2d(16, 2, 1)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.out(self.body(x))
        return y.softmax(1), y.argmax(1)


def test_a_program_with_large_tiles_compiles_and_runs_in_every_thread(tmp_path: Path) -> None:
    batch = aot.NamedDimension("batch", 1, 2, 8)
    model = Head().eval()
    out = aot.export(model, args=[aot.InputInfo((batch, 3, 64, 64), torch.float32)])
    exe: runtime.Executable = through_files(out, tmp_path)
    assert_equals_eager(exe, model, *[(torch.randn(n, 3, 64, 64),) for n in (1, 8)])
    assert "stack" in " ".join(exe.info.options.get("notes", []))
