"""Resource blobs in MLIR bytecode."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import torch

from pelton import aot
from pelton.aot.raising.fx.bytecode import read_blobs

WEIGHTS = {"float32": torch.randn(40, 30), "int64": torch.arange(2000), "bool": torch.ones(9) > 0}


class Holder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        for name, tensor in WEIGHTS.items():
            self.register_buffer(name, tensor)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x + self.float32.sum(), x + self.int64.sum(), self.bool & (x > 0).any()


def bytecode() -> bytes:
    file = io.BytesIO()
    aot.export(Holder(), args=(torch.ones(1),)).mlir_module.write_bytecode(file)
    return file.getvalue()


def test_blobs_are_the_weights_without_a_copy() -> None:
    data = bytecode()
    blobs = read_blobs(data)
    assert len(blobs) == len(WEIGHTS)
    for name, tensor in WEIGHTS.items():
        (blob,) = (blob for key, blob in blobs.items() if key.endswith(name))
        assert blob == memoryview(tensor.numpy()).cast("B")
        assert blob.obj is data


def test_a_module_without_blobs_has_none() -> None:
    file = io.BytesIO()
    aot.export(lambda x: x, args=(torch.ones(1),)).mlir_module.write_bytecode(file)
    assert read_blobs(file.getvalue()) == {}


@pytest.mark.parametrize("size", [0, 3, 30, 200])
def test_what_is_cut_short_is_refused(size: int) -> None:
    with pytest.raises(aot.ArtifactError, match="bytecode"):
        read_blobs(bytecode()[:size])


def test_weights_of_a_loaded_file_are_found(tmp_path: Path) -> None:
    aot.export(Holder(), args=(torch.ones(1),)).save_mlir(tmp_path / "module.mlirbc")
    module = aot.to_torch(tmp_path / "module.mlirbc").main.graph_module
    weight = dict(module.named_buffers())["float32"]
    torch.testing.assert_close(weight, WEIGHTS["float32"])
