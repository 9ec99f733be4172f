"""Import phases: their names, and how far each lowers a module."""

from __future__ import annotations

import pytest
from iree.compiler.ir import Context, Module, Operation

from pelton import aot
from pelton.aot.ir.module import is_lowered
from pelton.aot.lowering.import_phase import ImportPhase, lower_to


def module(operator: str = "") -> Operation:
    context = Context()
    context.load_all_available_dialects()
    tensor = "!torch.vtensor<[2],f32>"
    return Module.parse(
        f"""func.func @main(%x: {tensor}) -> {tensor} {{
          {operator}
          %0 = torch.aten.relu %x : {tensor} -> {tensor}
          return %0 : {tensor}
        }}""",
        context,
    ).operation


UNKNOWN = '%u = torch.operator "torch.testing.absent"() : () -> !torch.int'


@pytest.mark.parametrize(
    "given, phase",
    [
        (None, "IMPORT"), ("import", "CUSTOM_OP_EXPANSION"), ("torch-ir", "TORCH_IR"),
        ("Torch_IR", "TORCH_IR"), ("FULL", "IREE_INTERNAL"), (ImportPhase.FULL, "FULL"),
        ("custom-op-expansion", "CUSTOM_OP_EXPANSION"),
    ],
)  # fmt: skip
def test_phases_by_name(given: ImportPhase | str | None, phase: str) -> None:
    assert ImportPhase.parse(given) is ImportPhase[phase]


@pytest.mark.parametrize("given", ["", "torch ir", 1, "stablehlo"])
def test_unknown_phases_are_refused(given: object) -> None:
    with pytest.raises(aot.ExportError, match=r"unknown import phase .*; known: torch_ir, custom"):
        ImportPhase.parse(given)  # type: ignore[arg-type]


def test_each_phase_lowers_as_far_as_it_is_named() -> None:
    traced, full = module(UNKNOWN), module()
    before = str(traced)
    lower_to(traced, "torch_ir")
    assert str(traced) == before
    with pytest.raises(aot.UnsupportedOpError, match=r"testing\.absent"):
        lower_to(traced, None)
    lower_to(full, "import")
    assert not is_lowered(full)
    lower_to(full, "full")
    assert is_lowered(full) and "torch." not in str(full).replace("torch_c", "")
    after = str(full)
    lower_to(full, "full")
    lower_to(full, "torch_ir")
    assert str(full) == after


def test_a_phase_is_checked_before_the_module() -> None:
    full = module()
    lower_to(full, "full")
    with pytest.raises(aot.ExportError, match="unknown import phase"):
        lower_to(full, "no phase")
