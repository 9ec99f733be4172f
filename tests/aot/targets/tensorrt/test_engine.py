"""Builds of engines by TensorRT-RTX: profiles, settings, interrupts, and what a failure says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("tensorrt_rtx")
pytest.importorskip("onnxscript")

from pelton.aot.spec.errors import CompileError, ExportError
from pelton.aot.targets.tensorrt import engine
from pelton.aot.targets.tensorrt.engine import (
    BuildSettings,
    Engine,
    build_engine,
    inspected,
    job_of,
)
from pelton.aot.targets.tensorrt.library import Library, open_library
from pelton.aot.targets.tensorrt.options import TensorRTOptions
from pelton.runtime.artifacts.entry_points import Bounds, EngineProfile, Port
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.progress import listening
from tests.aot.targets.tensorrt.models import program_of
from tests.processes import Mark

RELU = "(float[N, 2] x) => (float[N, 2] y) { y = Relu(x) }"
X = Port("x", "user", "x", DTYPES["float32"], ("N", 2))


def profile(*rows: int, name: str = "default") -> EngineProfile:
    return EngineProfile(name, {"x": Bounds(*((size, 2) for size in rows))})


@pytest.fixture
def library() -> Library:
    return open_library("rtx")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return program_of(RELU).save(tmp_path / "model.onnx")


def settings(*capabilities: str, **options: Any) -> BuildSettings:
    return BuildSettings(TensorRTOptions(optimization_level=0, **options), capabilities or ("8.9",))


def build(library: Library, model: Path, *profiles: EngineProfile, **options: Any) -> Engine:
    given = profiles or (profile(1, 2, 4),)
    return build_engine(library, model, [X], given, settings(**options), model.parent, "main()")


def test_an_engine_is_built_and_written(library: Library, model: Path) -> None:
    (model.parent / "engine").write_bytes(b"x" * 10_000_000)  # longer than the plan
    built = build(library, model, profile(1, 2, 4, name="few"), profile(5, 6, 9, name="many"))
    assert built.seconds > 0
    assert built.plan == model.parent / "engine"
    assert 1000 < built.plan.stat().st_size < 10_000_000
    if not torch.cuda.is_available():
        assert inspected(library, None, built) is None


@pytest.mark.parametrize("rows", [(4, 2, 1), (3, 2, 4)], ids=["backward", "beside"])
def test_a_profile_that_tensorrt_refuses_is_named(
    library: Library, model: Path, rows: tuple[int, ...]
) -> None:
    with pytest.raises(ExportError, match=r"main\(\): TensorRT refuses profile 'default'"):
        build(library, model, profile(*rows))
    assert not (model.parent / "engine").exists()


def test_rtx_keeps_no_timings_and_tensorrt_builds_for_its_gpu(model: Path) -> None:
    options = settings(timing_cache=model.parent / "timings")
    rtx, tensorrt = (
        job_of(Library(flavor, None, "1"), model, [X], [], options, model.parent)
        for flavor in ("rtx", "tensorrt")
    )
    assert (rtx["timing_cache"], rtx["compute_capabilities"]) == (None, ["8.9"])
    assert tensorrt["timing_cache"] == str(model.parent / "timings")
    assert tensorrt["compute_capabilities"] == []


BUILDER = """
import json, os, sys, time
def tell(**fields):
    print(json.dumps(fields), flush=True)
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let another program stand for the builder; what it prints is what TensorRT would tell."""

    def stand_in(text: str) -> None:
        path = tmp_path / "stand_in.py"
        path.write_text(BUILDER + text)
        monkeypatch.setattr(engine.builder, "__file__", str(path))

    return stand_in


def test_steps_and_warnings_are_told(library: Library, model: Path, program: Any) -> None:
    program("""
for line in ("WARNING: slow", "ERROR: bad", "WARNING: slow", "WARNING: narrow: two"):
    tell(log=line)
tell(step=["build", 3, 7])
tell(seconds=1.5, ended=True)
""")
    steps: list[Any] = []
    with listening(lambda *told: None, lambda *told: steps.append(told)):
        built = build(library, model)
    assert built.warnings == ("slow", "narrow: two")
    assert built.seconds == 1.5
    assert steps == [("build", 3, 7)]


def test_a_failed_build_says_the_first_error_and_where_the_log_is(
    library: Library, model: Path, program: Any
) -> None:
    program("""
for line in ("WARNING: w", "ERROR: no kernel.", "ERROR: second"):
    tell(log=line)
tell(ended=True)
""")
    with pytest.raises(CompileError) as caught:
        build(library, model)
    text = str(caught.value)
    assert text.startswith(f"main(): TensorRT-RTX {library.version} failed to build an engine: ")
    assert "no kernel. Its log: " in text and "second" not in text
    path = Path(text.rpartition("Its log: ")[2])
    assert path.read_text().splitlines() == ["WARNING: w", "ERROR: no kernel.", "ERROR: second"]
    assert caught.value.diagnostics == path.read_text().rstrip("\n")
    path.unlink()
    path.parent.rmdir()


def test_a_crash_of_the_builder_is_an_error(library: Library, model: Path, program: Any) -> None:
    program("tell(log='ERROR: odd'); os.kill(os.getpid(), 11)")
    with pytest.raises(CompileError, match=r"crashed \(signal 11\), after odd"):
        build(library, model)


def test_what_the_builder_raises_is_in_the_log(library: Library, model: Path, program: Any) -> None:
    program("raise ValueError('of the builder')")
    with pytest.raises(CompileError) as caught:
        build(library, model)
    assert "ValueError: of the builder" in caught.value.diagnostics


def test_an_interrupt_ends_the_builder(
    library: Library, model: Path, program: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("tell(step=['build', 1, 9]); time.sleep(600)")
    mark = Mark()
    monkeypatch.setenv("PELTON_TEST_MARK", mark.environment["PELTON_TEST_MARK"])

    def interrupt(*told: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(engine, "advance", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build(library, model)
    monkeypatch.delenv("PELTON_TEST_MARK")
    mark.assert_gone()
