"""`export`: which way each kind of program goes, the names of results, and wrong combinations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot
from tests.programs import check_ir

X = torch.ones(2)


def function(x: torch.Tensor) -> torch.Tensor:
    return x + 1


class Small(aot.CompiledModule):
    def f(self, x=aot.AbstractI64):
        return x + 1


def program() -> torch.export.ExportedProgram:
    return torch.export.export(nn.ReLU(), (X,))


@pytest.mark.parametrize("kind", ["module", "function", "program", "saved"])
def test_every_kind_of_program_has_an_entry_point_main_in_a_module_of_that_name(
    kind: str, tmp_path: Path
) -> None:
    made: Any = {
        "module": lambda: aot.export(nn.ReLU(), X),
        "function": lambda: aot.export(function, args=[X]),
        "program": lambda: aot.export(program()),
        "saved": lambda: aot.export(nn.ReLU(), X),
    }[kind]()
    if kind == "saved":
        made.save_mlir(tmp_path / "m.mlir")
        made = aot.export(str(tmp_path / "m.mlir"))
    assert list(made.signatures) == ["main"]
    check_ir(made, "CHECK: module @module\nCHECK: func.func @main(")


def test_the_names_of_module_and_entry_point_can_be_given() -> None:
    out = aot.export(function, X, module_name="m", function_name="f")
    check_ir(out, "CHECK: module @m\nCHECK: func.func @f(")
    assert out.signatures["f"].name == "f"
    out = aot.export(program(), module_name="m", function_name="f")
    check_ir(out, "CHECK: module @m\nCHECK: func.func @f(")
    check_ir(aot.export(Small, module_name="renamed"), "CHECK: module @renamed")


def test_a_saved_module_is_what_was_saved(tmp_path: Path) -> None:
    aot.export(function, X, module_name="m").save_mlir(tmp_path / "m.mlirbc")
    loaded = aot.export(tmp_path / "m.mlirbc")
    assert loaded.exported.file == tmp_path / "m.mlirbc"
    assert "module @m" in str(loaded.mlir_module)


def test_empty_args_are_arguments_that_were_given() -> None:
    assert str(aot.export(lambda: X * 2, args=()).signatures["main"]) == "main() -> (float32[2])"


@pytest.mark.parametrize(
    "thing",
    [nn.ReLU, int, 3, None, torch.zeros(2)],
    ids=["class", "type", "number", "none", "tensor"],
)
def test_what_is_no_program_is_refused_with_the_kinds_that_are(thing: Any) -> None:
    with pytest.raises(aot.ExportError, match=r"not a supported type; pass an nn\.Module instance"):
        aot.export(thing, X)


def test_arguments_in_two_forms_are_refused() -> None:
    with pytest.raises(aot.ExportError, match="were both given; use one"):
        aot.export(function, X, args=[X])
    with pytest.raises(aot.ExportError, match="were both given; use one"):
        aot.export(function, X, args=[])


@pytest.mark.parametrize(
    "options",
    [{"args": [X]}, {"kwargs": {"x": X}}, {"function_name": "f"}, {"arg_device": {0: None}}],
    ids=lambda options: next(iter(options)),
)
def test_a_class_says_itself_what_its_methods_take(options: dict[str, Any]) -> None:
    with pytest.raises(aot.ExportError, match="Small is a CompiledModule, whose methods say"):
        aot.export(Small, **options)


@pytest.mark.parametrize(
    "options",
    [{"args": [X]}, {"kwargs": {"x": X}}, {"function_name": "f"}, {"dynamic_shapes": {"x": None}},
     {"profiles": [{"n": 1}]}],
    ids=lambda options: next(iter(options)),
)  # fmt: skip
def test_captured_programs_have_their_arguments(options: dict[str, Any]) -> None:
    with pytest.raises(aot.ExportError, match="has its arguments, sizes and names from"):
        aot.export(aot.FxPrograms(), **options)


def test_relations_of_sizes_are_stated_unless_told_otherwise() -> None:
    rows = aot.InputInfo((aot.NamedDimension("n", 1, 2, 8),), torch.float32)
    for stated in (True, False):
        out = aot.export(function, rows, import_symbolic_shape_expressions=stated)
        assert ("torch.bind_symbolic_shape" in str(out.mlir_module)) is stated


def test_devices_are_of_the_flat_inputs() -> None:
    out = aot.export(function, X, arg_device={0: aot.DeviceAffinity(1)})
    assert "__device_1" in str(out.mlir_module)
