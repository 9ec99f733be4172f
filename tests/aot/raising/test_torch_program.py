"""Exported modules run in eager by `to_torch`: the interface, state, parameters and errors."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from pelton import aot
from tests.aot.weights import TOKENS, eager, varied
from tests.programs import assert_same


@dataclasses.dataclass
class Box:
    low: torch.Tensor
    high: torch.Tensor


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("odd", torch.zeros(2, dtype=torch.bool))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        self.odd.logical_not_()
        self.calls.add_(1)
        return self.total


class Decoder(aot.CompiledModule):
    cache = aot.export_global(aot.AbstractTensor(4, 2), mutable=True, uninitialized=False)
    position = aot.export_global(aot.AbstractIndex, mutable=True)

    def append(self, x=aot.AbstractTensor(2)):
        self.cache[self.position] = x
        self.position = self.position + 1
        return self.position

    def read(self):
        return self.cache


def structured(
    x: torch.Tensor, options: dict[str, Any], box: Box, factor: int = 3, *, label: str = "plain"
) -> dict[str, Any]:
    scaled = x * factor + options["shift"] + box.low
    return {"sum": scaled, "pair": Pair(box.high + 0, x), "rest": [None, 5, label]}


X = torch.randn(3)


def test_containers_constants_and_defaults_are_those_of_the_function() -> None:
    args = (X, {"shift": X + 1, "none": None}, Box(X, X + 2))
    program = aot.to_torch(aot.export(structured, args=args, kwargs={"label": "named"}))
    assert_same(program(*args, label="named"), structured(*args, label="named"))
    assert list(inspect.signature(program.main).parameters) == [
        "x", "options", "box", "factor", "label",
    ]  # fmt: skip


def test_an_argument_that_does_not_fit_is_refused() -> None:
    program = aot.to_torch(aot.export(lambda x: x + 1, args=(X,)))
    with pytest.raises(aot.SignatureError, match="dimension 0 is fixed to 3, got 4"):
        program(torch.randn(4))


def test_python_numbers_are_arguments_and_results() -> None:
    def sliced(x: torch.Tensor, n: int) -> tuple[torch.Tensor, int]:
        return x[:n], n * 2 + x.shape[0]

    out = aot.export(
        sliced, args=[aot.InputInfo(((2, 4, 8),), torch.float32), aot.DimensionInputInfo((1, 2, 4))]
    )
    program = aot.to_torch(out)
    for size, n in ((2, 1), (5, 3), (8, 4)):
        x = torch.randn(size)
        assert_same(program(x, n), sliced(x, n))


@pytest.mark.parametrize("suffix", [".mlir", ".mlirbc"])
def test_a_file_is_enough(tmp_path: Path, suffix: str) -> None:
    model = nn.Sequential(nn.Linear(3, 600), nn.ReLU(), nn.Linear(600, 2)).eval()
    aot.export(model, args=(X,)).save_mlir(tmp_path / f"model{suffix}")
    program = aot.to_torch(tmp_path / f"model{suffix}")
    with torch.no_grad():
        assert_same(program(X), model(X))


def test_state_is_kept_between_calls_read_and_put_back() -> None:
    model = Counter()
    program = aot.to_torch(aot.export(model, args=(torch.ones(4),)))
    for _ in range(3):
        assert_same(program(torch.ones(4)), model(torch.ones(4)))
    for name, value in model.state_dict().items():
        assert_same(program.state[name], value)
    program.state.reset()
    assert program.state["calls"] == 0
    assert program.state["odd"].dtype is torch.bool


def test_results_do_not_change_with_state_that_they_show() -> None:
    program = aot.to_torch(aot.export(Counter(), args=(torch.ones(4),)))
    first = program(torch.ones(4))
    program(torch.ones(4))
    assert_same(first, torch.ones(4))


def test_entry_points_share_state() -> None:
    program = aot.to_torch(aot.export(Decoder))
    assert [program.append(torch.tensor([1.0, n])) for n in (2, 3)] == [1, 2]
    assert_same(program.read(), torch.tensor([[1.0, 2], [1, 3], [0, 0], [0, 0]]))
    assert list(program.functions) == ["append", "read"]
    assert list(program.state) == ["cache", "position"]


def test_a_check_of_the_program_stops_a_call() -> None:
    program = aot.to_torch(aot.export(Decoder))
    for _ in range(4):
        program.append(torch.ones(2))
    with pytest.raises(aot.PeltonError, match="beyond the end of dimension 0"):
        program.append(torch.ones(2))


def test_several_entry_points_are_called_by_name() -> None:
    with pytest.raises(aot.SignatureError, match="2 entry points, call one of them: append, read"):
        aot.to_torch(aot.export(Decoder))()


def test_one_function_may_be_asked_for() -> None:
    out = aot.export(Decoder)
    assert list(aot.to_torch(out, function="read").functions) == ["read"]
    with pytest.raises(aot.ExportError, match="no function 'write'; it has append, read"):
        aot.to_torch(out, function="write")


def test_external_parameters_come_from_an_archive(tmp_path: Path) -> None:
    model = varied()
    out = aot.export(model, args=(TOKENS,), external_parameters=True)
    out.save_mlir(tmp_path / "model.mlirbc")
    out.save_parameters(tmp_path / "model.irpa")
    expected = eager(model, TOKENS)
    assert_same(aot.to_torch(out)(TOKENS), expected)
    loaded = aot.to_torch(tmp_path / "model.mlirbc", tmp_path / "model.irpa")
    assert_same(loaded(TOKENS), expected)
    with pytest.raises(aot.ParameterError, match=r"(?s)missing.*model::body\.weight"):
        aot.to_torch(tmp_path / "model.mlirbc")


def test_a_module_without_signature_is_called_by_its_types(tmp_path: Path) -> None:
    (tmp_path / "plain.mlir").write_text("""
    func.func @scale(%x: tensor<?x2xf32>, %n: i64) -> (tensor<?x2xf32>, i64) {
      %two = arith.constant 2 : i64
      %more = arith.addi %n, %two : i64
      %sum = arith.addf %x, %x : tensor<?x2xf32>
      return %sum, %more : tensor<?x2xf32>, i64
    }""")
    program = aot.to_torch(tmp_path / "plain.mlir")
    assert_same(program(torch.ones(3, 2), 5), (torch.full((3, 2), 2.0), 7))


def test_all_unsupported_operations_are_named(tmp_path: Path) -> None:
    (tmp_path / "other.mlir").write_text("""
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %a = math.cbrt %x : tensor<4xf32>
      %b = math.erf %a : tensor<4xf32> loc("/home/user/model.py":7:1)
      return %b : tensor<4xf32>
    }""")
    with pytest.raises(aot.UnsupportedOpError, match=r"math\.cbrt.*math\.erf.*model\.py:7") as info:
        aot.to_torch(tmp_path / "other.mlir")
    assert info.value.operators == ("math.cbrt", "math.erf")


def test_what_is_no_module_is_refused(tmp_path: Path) -> None:
    (tmp_path / "module.mlir").write_text("nothing of the kind")
    with pytest.raises(aot.ArtifactError, match=r"module\.mlir"):
        aot.to_torch(tmp_path / "module.mlir")


def test_initializers_run_before_the_first_call(tmp_path: Path) -> None:
    (tmp_path / "module.mlir").write_text("""
    util.global private mutable @_count.global = dense<0> : tensor<2xi32>
    util.initializer {
      %seven = arith.constant 7 : i32
      %filled = flow.tensor.splat %seven : tensor<2xi32>
      util.global.store %filled, @_count.global : tensor<2xi32>
      util.return
    }
    func.func @main() -> tensor<2xi32> {
      %count = util.global.load @_count.global : tensor<2xi32>
      return %count : tensor<2xi32>
    }""")
    program = aot.to_torch(tmp_path / "module.mlir")
    assert_same(program(), torch.tensor([7, 7], dtype=torch.int32))
