"""Options of IREE's targets and the identity of a compile; nothing is compiled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pelton.aot.spec.errors import ExportError
from pelton.aot.targets import TARGETS
from pelton.aot.targets.iree import IreeOptions, IreeTarget
from pelton.aot.targets.iree.levels import CPU_VARIANTS, DEFAULT_LEVEL
from pelton.aot.targets.iree.target import cuda_architecture

CPU = IreeTarget("cpu", backend="llvm-cpu")


@pytest.mark.parametrize("level", [-1, 6, 2.0, True, "3"])
def test_an_impossible_level_is_refused(level: Any) -> None:
    with pytest.raises(ExportError, match="optimization_level must be 0 to 5"):
        IreeOptions(optimization_level=level)


@pytest.mark.parametrize("level", range(6))
def test_every_level_is_taken(level: int) -> None:
    assert IreeOptions(optimization_level=level).level == level


def test_no_level_is_the_default() -> None:
    assert IreeOptions().level == DEFAULT_LEVEL


@pytest.mark.parametrize("flags", ["--a", [1], [None]])
def test_flags_are_a_sequence_of_texts(flags: Any) -> None:
    with pytest.raises(ExportError, match="flags must be a sequence of texts"):
        IreeOptions(flags=flags)


def test_an_unknown_variant_lists_the_known_ones() -> None:
    with pytest.raises(
        ExportError, match=f"unknown variant 'fast'; known: {next(iter(CPU_VARIANTS))}"
    ):
        IreeOptions(variant="fast")


def test_variants_are_of_cpus_only() -> None:
    variant = next(iter(CPU_VARIANTS))
    assert CPU.options({"variant": variant}).variant == variant
    with pytest.raises(ExportError, match="target 'cuda' has no variants"):
        TARGETS["cuda"].options({"variant": variant})
    assert set(CPU.variants(IreeOptions())) == set(CPU_VARIANTS)
    assert IreeTarget("vulkan", backend="vulkan-spirv").variants(IreeOptions()) == {}


def test_rocm_needs_an_architecture() -> None:
    with pytest.raises(ExportError, match="target 'rocm' needs an architecture"):
        TARGETS["rocm"].options({})
    assert TARGETS["rocm"].options({"arch": "gfx942"}).arch == "gfx942"


def test_an_unknown_cuda_architecture_is_refused() -> None:
    with pytest.raises(ExportError, match="sm_79"):
        TARGETS["cuda"].options({"arch": "sm_79"})


@pytest.mark.parametrize(
    ("name", "architecture", "substitute"),
    [("sm_80", "sm_80", False), ("A100", "a100", False), ("h100", "sm_89", True)],
)
def test_cuda_architectures(name: str, architecture: str, substitute: bool) -> None:
    found, note = cuda_architecture(name)
    assert found == architecture
    assert bool(note) is substitute


def test_the_identity_has_what_decides_the_artifact(tmp_path: Path) -> None:
    plain = CPU.identity(IreeOptions())
    assert plain["processor"] is not None
    assert CPU.identity(IreeOptions(target_cpu="generic"))["processor"] is None
    assert CPU.identity(IreeOptions(flags=("--a",))) != plain
    assert CPU.identity(IreeOptions(isolate=False)) == plain  # which changes nothing of the code


def test_a_file_that_a_flag_names_is_part_of_the_identity(tmp_path: Path) -> None:
    spec = tmp_path / "spec.mlir"
    spec.write_text("one")
    options = IreeOptions(flags=(f"--iree-codegen-tuning-spec-path={spec}",))
    first = CPU.identity(options)
    spec.write_text("two")
    assert CPU.identity(options) != first
