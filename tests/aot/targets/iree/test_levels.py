"""What each optimisation level asks of IREE, and what happens where IREE fails at it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from pelton import aot, runtime
from pelton.aot.ir.module import has_dynamic_sizes
from pelton.aot.targets import find_target
from pelton.aot.targets.iree import target as iree_target
from pelton.codegen import CompilerFailed, PhasePasses

TILING = "--iree-opt-data-tiling"
Compile = Callable[[Path, Path, Sequence[str], PhasePasses], None]


@pytest.fixture(scope="module")
def module() -> aot.ExportOutput:
    return aot.export(torch.nn.Linear(3, 2), args=(torch.zeros(1, 3),))


class Compiler:
    """IREE, or what fails at some flags; remembers the flags of each attempt."""

    def __init__(self, real: Compile, fails: Callable[[Sequence[str]], str]) -> None:
        self.real = real
        self.fails = fails
        self.attempts: list[str] = []
        self.flags: list[Sequence[str]] = []

    def __call__(
        self, source: Path, target: Path, flags: Sequence[str], passes: PhasePasses
    ) -> None:
        level = next(flag for flag in flags if flag.startswith("--iree-opt-level"))
        self.attempts.append(f"{level[-2:]}{'+tiling' if TILING in flags else ''}")
        self.flags.append(flags)
        message = self.fails(flags)
        if message:
            raise CompilerFailed(message)
        self.real(source, target, flags, passes)


def install(monkeypatch: pytest.MonkeyPatch, fails: Callable[[Sequence[str]], str]) -> Compiler:
    compiler = Compiler(iree_target.compile_file, fails)
    monkeypatch.setattr(iree_target, "compile_file_isolated", compiler)
    return compiler


def test_failure_of_a_level_falls_back_and_says_so(
    module: aot.ExportOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = install(monkeypatch, lambda flags: f"error: {flags}" if TILING in flags else "")
    with pytest.warns(UserWarning, match="optimization level 2, as IREE failed at level 5"):
        module.compile(tmp_path / "a.vmfb", optimization_level=5)
    assert compiler.attempts == ["O3+tiling", "O1+tiling", "O1"]
    exe = runtime.load(tmp_path / "a.vmfb")
    assert "failed at level 5" in exe.info.options["notes"][0]


def test_default_level_without_tiling_is_stated_by_the_artifact_only(
    module: aot.ExportOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, lambda flags: "error: tiling" if TILING in flags else "")
    module.compile(tmp_path / "a.vmfb")
    exe = runtime.load(tmp_path / "a.vmfb")
    assert "optimization level 2, as IREE failed at level 3" in exe.info.options["notes"][0]


@pytest.mark.parametrize(("level", "tiled"), [(2, False), (3, False), (4, True), (5, True)])
def test_external_parameters_are_tiled_on_request_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, level: int, tiled: bool
) -> None:
    """Tiled, they would be copied at each load; as they are, programs share the archive's."""
    compiler = install(monkeypatch, lambda flags: "")
    model = torch.nn.Linear(3, 2)
    out = aot.export(model, args=(torch.zeros(1, 3),), external_parameters=True)
    out.compile(tmp_path / "a.vmfb", optimization_level=level)
    assert [TILING in flags for flags in compiler.flags] == [tiled]
    exe = runtime.load(tmp_path / "a.vmfb", parameters=model.state_dict())
    torch.testing.assert_close(exe(torch.ones(1, 3)), model(torch.ones(1, 3)).detach())


def test_after_the_same_failure_twice_the_simplest_level_is_tried(
    module: aot.ExportOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = install(monkeypatch, lambda flags: "error: no such operation")
    with pytest.raises(aot.CompileError, match="no such operation"):
        module.compile(tmp_path / "a.vmfb", optimization_level=5)
    assert compiler.attempts == ["O3+tiling", "O1+tiling", "O1"]
    assert not (tmp_path / "a.vmfb").exists()


@pytest.mark.parametrize("level", range(6))
def test_attempts_go_down_and_never_repeat(level: int) -> None:
    for name in ("cpu", "cuda"):
        target, _ = find_target(name)
        for external in (False, True):
            attempts = target._attempts(level, external)  # type: ignore[attr-defined]
            levels = list(attempts.values())
            assert levels[0] == level
            assert levels == sorted(set(levels), reverse=True)


def test_sizes_that_vary_are_seen_in_a_module() -> None:
    varies = ({0: torch.export.Dim.DYNAMIC},)
    fixed = aot.export(lambda x: x + 1, args=(torch.ones(2, 3),))
    dynamic = aot.export(lambda x: x + 1, args=(torch.ones(2, 3),), dynamic_shapes=varies)
    within = aot.export(lambda x: x.nonzero().sum(), args=(torch.ones(2, 3),))
    assert not has_dynamic_sizes(fixed.mlir_module)
    assert has_dynamic_sizes(dynamic.mlir_module)
    assert has_dynamic_sizes(within.mlir_module)


@pytest.mark.parametrize("level", [-1, 6, "3", True, 2.0])
def test_other_levels_are_refused(module: aot.ExportOutput, tmp_path: Path, level: Any) -> None:
    with pytest.raises(aot.ExportError, match="optimization_level must be 0 to 5, got"):
        module.compile(tmp_path / "a.vmfb", optimization_level=level)


def test_documentation_has_the_default_level() -> None:
    text = (Path(__file__).parents[4] / "docs" / "optimization_levels.md").read_text()
    assert f"default {iree_target.DEFAULT_LEVEL}." in text
    assert f"| **{iree_target.DEFAULT_LEVEL}** |" in text


@pytest.mark.parametrize("level", [2, 3, 5])
def test_convolutions_are_right_at_every_level(tmp_path: Path, level: int) -> None:
    """The layouts that levels change are those of convolutions and products."""
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, stride=2, padding=1),
        torch.nn.Conv2d(8, 8, 3, groups=8),
        torch.nn.Conv2d(8, 4, 3, dilation=2, padding=2),
        torch.nn.ConvTranspose2d(4, 3, 2, 2),
        torch.nn.Flatten(2),
        torch.nn.Linear(256, 5),
    ).eval()
    out = aot.export(model, args=[aot.InputInfo(((1, 2, 3), 3, 19, 20), torch.float32)])
    out.compile(tmp_path / "a.vmfb", optimization_level=level)
    exe = runtime.load(tmp_path / "a.vmfb")
    for batch in (1, 2, 3):
        x = torch.rand(batch, 3, 19, 20)
        torch.testing.assert_close(exe(x), model(x).detach(), rtol=1e-4, atol=1e-5)
