"""Package modules on every engine: weights that are inputs, from the package or the user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pelton import aot, runtime
from pelton.aot.raising.onnx import to_onnx
from pelton.aot.raising.torch_program import open_module
from pelton.runtime.errors import ParameterError
from tests.packages import package_of, with_engines
from tests.programs import assert_same
from tests.runtime.fake_gpu import FakeGpu
from tests.runtime.programs import rows

pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")


@pytest.fixture(scope="module")
def linear() -> torch.nn.Linear:
    torch.manual_seed(0)
    return torch.nn.Linear(4, 3)


def weights_outside(model: torch.nn.Module, folder: Path, *, external: bool) -> Path:
    out = aot.export(model, args=[rows(1, 8)], external_parameters=external)
    if external:
        out.save_parameters(folder / "weights.safetensors")
    out.save_mlir(folder / "m.mlirbc")
    loaded = aot.export(folder / "m.mlirbc")
    source = open_module(loaded, folder / "weights.safetensors" if external else None)
    program = to_onnx(source, weights_as_inputs=True)
    return with_engines(*package_of([program], folder), folder / "m.trtm")


@pytest.fixture(scope="module")
def shared(linear: torch.nn.Linear, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return weights_outside(linear, tmp_path_factory.mktemp("shared"), external=True)


@pytest.fixture(params=["reference", "cuda"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "cuda":
        FakeGpu(monkeypatch)
    return str(request.param)


def test_weights_come_from_the_package(linear: torch.nn.Linear, shared: Path, device: str) -> None:
    x = torch.randn(5, 4)
    assert_same(runtime.load(shared, device=device)(x), linear(x))


def test_other_weights_are_given_at_load(shared: Path, device: str) -> None:
    other = torch.nn.Linear(4, 3)
    x = torch.randn(5, 4)
    for given in (other.state_dict(), {"model": other.state_dict()}):
        assert_same(runtime.load(shared, device=device, parameters=given)(x), other(x))


def test_weights_that_do_not_fit_are_refused(shared: Path, device: str) -> None:
    wrong: dict[str, Any] = {"weight": np.zeros((3, 4), np.float32), "bais": np.zeros(3, np.int8)}
    with pytest.raises(ParameterError, match=r"missing \(1\): model::bias .*\n.*bais"):
        runtime.load(shared, device=device, parameters=wrong)


def test_weights_of_the_module_itself_are_in_the_package(
    linear: torch.nn.Linear, tmp_path: Path, device: str
) -> None:
    path = weights_outside(linear, tmp_path, external=False)
    x = torch.randn(5, 4)
    assert_same(runtime.load(path, device=device)(x), linear(x))
    with pytest.raises(ParameterError, match="takes no parameters: its weights are in its engines"):
        runtime.load(path, device=device, parameters={"weight": np.zeros(1)})
