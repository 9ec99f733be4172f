"""Makes the golden files of the present version: `python tests/golden/make.py`.

They are made once for a version that changes a format, and kept: later versions read them, or
refuse them with both versions.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import torch

from pelton import aot
from pelton.runtime.archive import open_archive, write_archive


class Net(torch.nn.Module):
    """Has a weight of a simple form, state, a dynamic size and containers."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
        self.register_buffer("calls", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: torch.Tensor, *, scale: float = 2.0) -> dict[str, torch.Tensor]:
        self.calls.add_(1)
        return {"y": (x @ self.weight) * scale, "calls": self.calls + 0}


def main() -> None:
    """Write the files."""
    folder = Path(__file__).parent / importlib.metadata.version("pelton")
    folder.mkdir(exist_ok=True)
    rows = aot.InputInfo((aot.NamedDimension("rows", 1, 2, 8), 2), torch.float32)
    out = aot.export(Net(), args=[rows], external_parameters=True)
    out.save_mlir(folder / "net.mlirbc")
    out.save_mlir(folder / "net.mlir")
    out.save_parameters(folder / "net.irpa")
    archive = open_archive(folder / "net.irpa")
    write_archive(folder / "net.safetensors", list(archive.values()))
    out.compile(folder / "net.vmfb", target_cpu="generic")


if __name__ == "__main__":
    main()
