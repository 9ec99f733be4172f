"""Compiled code never writes to what the caller gave, whatever the compiler does in place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from pelton import aot, runtime
from tests.programs import assert_same, compiled

X, ROWS, VALUES = torch.randn(16, 8), torch.tensor([3, 1]), torch.ones(2, 8)
PLACES = torch.randint(0, 16, (2, 8))
WRITERS: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "sort": (lambda x: torch.sort(x.view(-1))[0], (X,)),
    "index_put": (lambda x, i, v: x.index_put((i,), v), (X, ROWS, VALUES)),
    "scatter_add": (lambda x, i, v: x.scatter_add(0, i, v), (X, PLACES, VALUES)),
    "index_copy": (lambda x, i, v: x.index_copy(0, i, v), (X, ROWS, VALUES)),
    "slice_scatter": (lambda x, v: torch.slice_scatter(x, v, 0, 2, 4), (X, VALUES)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_inputs_stay_as_they_were(name: str, tmp_path: Path) -> None:
    program, args = WRITERS[name]
    exe = compiled(tmp_path, program, args)
    given = [tensor.clone() for tensor in args]
    expected = program(*args)
    assert_same(exe(*given), expected)
    assert_same(given, list(args))
    arrays = [tensor.numpy().copy() for tensor in args]
    exe(*arrays)
    for array, tensor in zip(arrays, args, strict=True):
        np.testing.assert_array_equal(array, tensor.numpy())


def test_a_scatter_is_known_to_write_to_its_input() -> None:
    program, args = WRITERS["index_put"]
    assert aot.export(program, args=args).signatures["main"].overwrites_inputs


def test_a_network_borrows_the_memory_of_its_inputs() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    out = aot.export(model.eval(), args=(torch.randn(1, 3, 8, 8),))
    assert not out.signatures["main"].overwrites_inputs
    attention = nn.TransformerEncoderLayer(16, 4, batch_first=True).eval()
    out = aot.export(attention, args=(torch.randn(1, 5, 16),))
    assert not out.signatures["main"].overwrites_inputs


def test_a_procedure_that_updates_its_argument_gets_a_copy(tmp_path: Path) -> None:
    class Update(aot.CompiledModule):
        def run(
            self,
            x=aot.AbstractTensor(4, 4, dtype=torch.float32),
            y=aot.AbstractTensor(1, 4, dtype=torch.float32),
        ):
            return aot.IREE.tensor_update(x, y, 1, 0)

    aot.export(Update).compile(tmp_path / "m.vmfb")
    x, y = torch.zeros(4, 4), torch.ones(1, 4)
    result = runtime.load(tmp_path / "m.vmfb").run(x, y)
    assert result.sum().item() == 4
    assert x.sum().item() == 0
