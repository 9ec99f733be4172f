"""Split a model over two devices: the first stage on one, the second on another.

Weights, arguments and values say on which of the program's devices they are; what computes with
them runs there. Here both devices are processors with threads of their own, so that the sample runs
anywhere.

    python samples/two_devices.py
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from torch import Tensor, nn

from pelton import aot, runtime
from pelton.aot.custom_ops import transfer_to_device


class TwoStages(nn.Module):
    """An encoder on device 0 and a head on device 1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, width), nn.GELU(), nn.LayerNorm(width))
        self.head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, 4))
        for weight in self.encoder.parameters():
            aot.DeviceTensorTrait(0).set(weight)
        for weight in self.head.parameters():
            aot.DeviceTensorTrait(1).set(weight)

    def forward(self, x: Tensor, scale: Tensor) -> Tensor:
        hidden = transfer_to_device(self.encoder(x), 1)
        return self.head(hidden) * scale


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--width", type=int, default=64)
    torch.manual_seed(0)
    model = TwoStages(parser.parse_args().width).eval()

    rows = aot.NamedDimension("rows", 1, 8, 64)
    out = aot.export(
        model,
        args=[aot.InputInfo((rows, 16), torch.float32), torch.ones(4)],
        arg_device={0: aot.DeviceAffinity(0), 1: aot.DeviceAffinity(1)},
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "two_stages.vmfb")
        out.compile(path)
        program = runtime.load(path, device=["cpu", "cpu"])
    print(program)
    for count in (1, 8, 64):
        x, scale = torch.randn(count, 16), torch.rand(4)
        torch.testing.assert_close(program(x, scale), model(x, scale), rtol=1e-4, atol=1e-5)
        print(f"{count:3} rows: equal to eager")


if __name__ == "__main__":
    main()
