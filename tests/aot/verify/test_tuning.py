"""Tuning: the fastest variant that is right is kept, and remembered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot, runtime
from pelton.aot.targets.iree import levels
from pelton.aot.verify import tuning

X = torch.randn(3, 8)


@pytest.fixture(autouse=True)
def two_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of the variants are enough, but for who asks for others."""
    few = {name: levels.CPU_VARIANTS[name] for name in ("tiled", "untiled")}
    monkeypatch.setattr("pelton.aot.targets.iree.target.CPU_VARIANTS", few)


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()


@pytest.fixture
def out(model: nn.Module) -> aot.ExportOutput:
    batch = aot.NamedDimension("batch", 1, 3, 8)
    return aot.export(model, args=[aot.InputInfo((batch, 8), torch.float32)])


def times(monkeypatch: pytest.MonkeyPatch, milliseconds: Mapping[str, float]) -> None:
    """Let variants take known times."""

    def take_turns(candidates: Any, calls: Any, seconds: float) -> None:
        for candidate in candidates:
            for name in calls:
                candidate.milliseconds[name] = [milliseconds[candidate.variant]]

    monkeypatch.setattr(tuning, "_interleave", take_turns)


@pytest.mark.parametrize("fastest", ["tiled", "untiled"])
def test_the_fastest_is_kept(
    out: aot.ExportOutput, monkeypatch: pytest.MonkeyPatch, fastest: str
) -> None:
    times(monkeypatch, {"tiled": 2.0, "untiled": 2.0, fastest: 1.0})
    tuned = aot.tune(out)
    assert tuned.variant == fastest
    assert {trial.variant: trial.milliseconds for trial in tuned.trials}[fastest] == 1.0


def test_tuned_artifact_is_right_and_says_its_variant(
    model: nn.Module, out: aot.ExportOutput, tmp_path: Path
) -> None:
    tuned = aot.tune(out, seconds=0.05)
    assert all(trial.milliseconds and trial.milliseconds > 0 for trial in tuned.trials)
    out.compile(tmp_path / "a.vmfb", variant=tuned.variant)
    exe = runtime.load(tmp_path / "a.vmfb")
    assert exe.info.options["variant"] == tuned.variant
    for batch in (1, 3, 8):
        x = torch.randn(batch, 8)
        torch.testing.assert_close(exe(x), model(x).detach())


def test_variant_with_wrong_numbers_is_never_kept(
    out: aot.ExportOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    times(monkeypatch, {"tiled": 1.0, "untiled": 9.0})
    real = tuning.load

    def wrong(path: Path, **options: Any) -> Any:
        exe = real(path, **options)
        if exe.info.options["variant"] == "tiled":
            function = exe.functions["main"]
            run = function._run
            monkeypatch.setattr(function, "_run", lambda leaves: [run(leaves)[0] + 1])
        return exe

    monkeypatch.setattr(tuning, "load", wrong)
    tuned = aot.tune(out)
    assert tuned.variant == "untiled"
    assert "not close" in tuned.trials[0].problem
    assert tuned.trials[0].milliseconds is None


def test_variant_that_does_not_compile_is_told(
    out: aot.ExportOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    variants = {"no-such-flag": ("--no-such-flag",), "tiled": levels.CPU_OPT_LEVELS[3]}
    monkeypatch.setattr("pelton.aot.targets.iree.target.CPU_VARIANTS", variants)
    tuned = aot.tune(out, seconds=0.01)
    assert tuned.variant == "tiled"
    assert "no-such-flag" in tuned.trials[0].problem


def test_no_right_variant_is_an_error(
    out: aot.ExportOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pelton.aot.targets.iree.target.CPU_VARIANTS", {"bad": ("--no-such-flag",)})
    with pytest.raises(aot.CompileError, match="no variant compiles and is right: bad:"):
        aot.tune(out)


def test_cache_remembers_what_was_found(
    out: aot.ExportOutput, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times(monkeypatch, {"tiled": 2.0, "untiled": 1.0})
    out.compile(tmp_path / "a.vmfb", tune=True, cache_dir=tmp_path / "cache")

    def never(*_: Any) -> None:
        raise AssertionError("tuned or compiled again")

    monkeypatch.setattr(tuning, "_interleave", never)
    monkeypatch.setattr("pelton.aot.targets.iree.target.compile_file_isolated", never)
    out.compile(tmp_path / "b.vmfb", tune=True, cache_dir=tmp_path / "cache")
    assert runtime.load(tmp_path / "b.vmfb").info.options["variant"] == "untiled"


def test_state_is_as_at_first_when_variants_are_checked() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count += x
            return self.count * 2

    out = aot.export(Counter(), args=(torch.ones(2),))
    exe_calls = {"main": ((torch.ones(2),), {})}
    tuned = aot.tune(out, seconds=0.01, inputs=exe_calls)
    assert not any(trial.problem for trial in tuned.trials)


def test_external_parameters_are_those_of_the_export(model: nn.Module, tmp_path: Path) -> None:
    out = aot.export(model, args=(X,), external_parameters=True)
    out.save_mlir(tmp_path / "m.mlirbc")
    out.save_parameters(tmp_path / "m.irpa")
    assert not any(trial.problem for trial in aot.tune(out, seconds=0.01).trials)
    loaded = aot.export(tmp_path / "m.mlirbc")
    tuned = aot.tune(loaded, seconds=0.01, parameters=tmp_path / "m.irpa")
    assert not any(trial.problem for trial in tuned.trials)


def test_compile_of_a_function_can_tune(model: nn.Module) -> None:
    exe = aot.compile(model, args=[aot.InputInfo((3, 8), torch.float32)], tune=True)
    assert exe.info.options["variant"] in ("tiled", "untiled")
    torch.testing.assert_close(exe(X), model(X).detach())


def test_targets_without_variants_are_refused(out: aot.ExportOutput, tmp_path: Path) -> None:
    with pytest.raises(aot.ExportError, match="target 'cuda' has nothing to tune"):
        aot.tune(out, target="cuda")
    with pytest.raises(aot.ExportError, match="'cuda' has no variants"):
        out.compile(tmp_path / "a.vmfb", target="cuda", variant="tiled")
    with pytest.raises(aot.ExportError, match="unknown variant 'quick'; known: tiled"):
        out.compile(tmp_path / "a.vmfb", variant="quick")


def test_unknown_entry_point_of_inputs_is_refused(out: aot.ExportOutput) -> None:
    with pytest.raises(aot.ExportError, match="no entry point forward to tune; there are: main"):
        aot.tune(out, inputs={"forward": ((X,), {})})
