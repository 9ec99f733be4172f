import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from pelton import aot, runtime
from pelton.aot.spec.meta_tensors import has_data, is_same_tensor, traced_on_cpu
from tests.aot.weights import NEEDED, TOKENS, Varied, eager, varied

MODES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "meta": lambda: torch.device("meta"),
    "fake": FakeTensorMode,
}


class Small(nn.Module):
    """Tied weights, state, and constants that are made in the trace."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("count", torch.zeros(3))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        x = self.embed(tokens) + torch.arange(4) + torch.tensor([1.0, 2, 3, 4])
        return self.head(x) + self.count.sum()


def text(model: nn.Module, tokens: torch.Tensor) -> str:
    out = aot.export(
        model,
        args=(tokens,),
        external_parameters=True,
        dynamic_shapes=({0: torch.export.Dim("length", min=1, max=8)},),
    )
    return str(out.mlir_module)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_module_is_the_same_with_and_without_data(mode: str, device: str) -> None:
    with MODES[mode]():
        model = Small()
    assert not has_data(model.head.weight)
    assert text(model, TOKENS.to(device)) == text(Small(), TOKENS)


@pytest.mark.parametrize("mode", MODES)
def test_model_without_data_gets_its_weights_at_load(mode: str, tmp_path: Path) -> None:
    with MODES[mode]():
        model = Small()
    aot.export(model, args=(TOKENS,), external_parameters=True).compile(tmp_path / "a.vmfb")
    given = Small()
    executable = runtime.load(tmp_path / "a.vmfb", parameters=given.state_dict())
    expected = eager(given, TOKENS)
    torch.testing.assert_close(executable(TOKENS), expected)
    torch.testing.assert_close(executable(TOKENS), expected + 3)


def test_exported_program_without_data_has_external_parameters() -> None:
    with FakeTensorMode():
        model, tokens = Small(), torch.zeros(3, dtype=torch.int64)
    program = torch.export.export(model, (tokens,))
    out = aot.export(program, external_parameters=True)
    assert out.parameters["model"].keys() == {"embed.weight", "count"}


def test_tensors_without_data_that_would_be_part_of_the_module_are_named_at_once() -> None:
    model = varied().to("meta")
    with pytest.raises(aot.ExportError, match=r"no data .* body\.weight, body\.bias, scratch;"):
        aot.export(
            model, args=(TOKENS,), external_parameters=lambda name: not name.startswith("body.")
        )


def test_model_with_some_tensors_without_data_keeps_the_others() -> None:
    with torch.device("meta"):
        model = Varied()
    model.scratch = torch.ones(4)
    out = aot.export(model, args=(TOKENS,), external_parameters=True)
    assert out.parameters["model"].keys() == NEEDED


def test_weights_without_data_cannot_be_saved(tmp_path: Path) -> None:
    with torch.device("meta"):
        layer = nn.Linear(2, 2)
    out = aot.export(layer, args=(torch.ones(2),), external_parameters=True)
    with pytest.raises(aot.ParameterError, match="'weight' has no data"):
        out.save_parameters(tmp_path / "a.irpa")
    assert not list(tmp_path.iterdir())


def test_weights_without_data_cannot_be_loaded(tmp_path: Path) -> None:
    with torch.device("meta"):
        layer = nn.Linear(2, 2)
    aot.export(layer, args=(torch.ones(2),), external_parameters=True).compile(tmp_path / "a.vmfb")
    with pytest.raises(aot.ParameterError, match="'weight' has no data"):
        runtime.load(tmp_path / "a.vmfb", parameters=layer.state_dict())


# Tracing on the CPU


def test_module_has_fake_tensors_on_the_cpu_for_the_time_of_a_trace() -> None:
    with torch.device("meta"):
        model = Small()
    before = dict(model.state_dict(keep_vars=True))
    with traced_on_cpu(model):
        assert {t.device.type for t in model.state_dict().values()} == {"cpu"}
        assert isinstance(model.head.weight, nn.Parameter)
        assert model.head.weight is model.embed.weight
    after = model.state_dict(keep_vars=True)
    assert all(after[name] is tensor for name, tensor in before.items())


def test_module_has_its_own_tensors_after_a_failed_trace() -> None:
    class Failing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.zeros(3, device="meta")
            self.layer = nn.Linear(3, 3, device="meta")

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise ValueError(f"sizes {self.table.device} {tuple(self.table.shape)}")

    model = Failing()
    weight, table = model.layer.weight, model.table
    with pytest.raises(aot.ExportError, match=re.escape("sizes cpu (3,)")):
        aot.export(model, args=(torch.ones(3),), external_parameters=True)
    assert model.layer.weight is weight and model.table is table


def test_tensors_are_the_same_where_their_memory_and_layout_are() -> None:
    tensor = torch.ones(2, 2)
    assert is_same_tensor(tensor, tensor.detach())
    assert not is_same_tensor(tensor, tensor.t().clone())
    assert not is_same_tensor(tensor, tensor.reshape(4))
    assert not is_same_tensor(tensor, tensor.to("meta"))
    assert is_same_tensor(tensor.to("meta"), tensor.to("meta"))
