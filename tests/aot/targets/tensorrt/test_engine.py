"""Builds of engines by TensorRT-RTX: profiles, settings, interrupts, and what a failure says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("tensorrt_rtx")
pytest.importorskip("onnxscript")

from pelton.aot.spec.errors import ExportError
from pelton.aot.targets.tensorrt import engine
from pelton.aot.targets.tensorrt.engine import BuildSettings, Engine, build_engine, inspected
from pelton.aot.targets.tensorrt.library import Library, Log
from pelton.aot.targets.tensorrt.network import Network, parse
from pelton.aot.targets.tensorrt.options import TensorRTOptions
from pelton.runtime.artifacts.entry_points import Bounds, EngineProfile, Port
from pelton.runtime.call.dtypes import DTYPES
from tests.aot.targets.tensorrt.models import opened, program_of

RELU = "(float[N, 2] x) => (float[N, 2] y) { y = Relu(x) }"
X = Port("x", "user", "x", DTYPES["float32"], ("N", 2))


def profile(*rows: int, name: str = "default") -> EngineProfile:
    return EngineProfile(name, {"x": Bounds(*((size, 2) for size in rows))})


@pytest.fixture
def parsed() -> Iterator[tuple[Library, Log, Network]]:
    with opened() as (library, logger, log):
        network = parse(library, logger, program_of(RELU).to_bytes())
        assert network is not None
        yield library, log, network


def settings(*capabilities: str, **options: Any) -> BuildSettings:
    return BuildSettings(TensorRTOptions(optimization_level=0, **options), capabilities or ("8.9",))


def test_an_engine_is_built_and_written(parsed: Any, tmp_path: Path) -> None:
    library, log, network = parsed
    profiles = [profile(1, 2, 4, name="few"), profile(5, 6, 9, name="many")]
    built = build_engine(library, log, network, [X], profiles, settings(), "main()")
    assert built.seconds > 0
    built.write(tmp_path / "engine")
    assert (tmp_path / "engine").read_bytes() == bytes(memoryview(built.plan)) != b""
    if not torch.cuda.is_available():
        assert inspected(library, None, built) is None


def test_what_tensorrt_warned_of_is_told_once() -> None:
    with opened() as (library, logger, log):
        network = parse(library, logger, program_of(RELU).to_bytes())
        assert network is not None
        log.lines += ["WARNING: slow", "ERROR: bad", "WARNING: slow", "WARNING: narrow: two"]
        built = build_engine(library, log, network, [X], [profile(1, 2, 4)], settings(), "main()")
    assert built.warnings[:2] == ("slow", "narrow: two")


@pytest.mark.parametrize("rows", [(4, 2, 1), (3, 2, 4)], ids=["backward", "beside"])
def test_a_profile_that_tensorrt_refuses_is_named(parsed: Any, rows: tuple[int, ...]) -> None:
    library, log, network = parsed
    with pytest.raises(ExportError, match=r"main\(\): TensorRT refuses profile 'default'"):
        build_engine(library, log, network, [X], [profile(*rows)], settings(), "main()")


def test_the_builder_is_told_what_the_user_asked_for(parsed: Any) -> None:
    library, _, network = parsed
    trt = library.module
    options = settings("8.0", "12.0", workspace_bytes=1 << 20, weights="refit", layer_info=True)
    config = engine._configured(library, network, options)
    assert config.builder_optimization_level == 0
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == 1 << 20
    assert config.get_flag(trt.BuilderFlag.REFIT)
    assert config.profiling_verbosity == trt.ProfilingVerbosity.DETAILED
    assert config.num_compute_capabilities == 2
    assert config.get_compute_capability(1) == trt.ComputeCapability.SM120
    plain = engine._configured(library, network, settings())
    assert not plain.get_flag(trt.BuilderFlag.REFIT)


def test_rtx_keeps_no_timings(parsed: Any, tmp_path: Path) -> None:
    library, _, network = parsed
    config = engine._configured(library, network, settings())
    options = TensorRTOptions(timing_cache=tmp_path / "timings")
    assert engine._timing_cache(library, config, options) is None


class Slow:
    """Stands for a builder that does not end by itself; it counts on the monitor to be stopped."""

    def __init__(self, outcome: Any = b"plan") -> None:
        self.outcome = outcome
        self.stopped = False

    def build_serialized_network(self, definition: Any, config: Any) -> Any:
        monitor = config.progress_monitor
        monitor.phase_start("build", None, 1000)
        monitor.phase_start("inner", "build", 10)
        for step in range(1000):
            if self.outcome is None and not monitor.step_complete("build", step):
                self.stopped = True
                return None
            threading.Event().wait(0.01 if self.outcome is None else 0)
        monitor.phase_finish("build")
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Config:
    progress_monitor: Any = None


def build_of(library: Library, slow: Slow) -> Any:
    return engine._Build(library, Network(slow, None, None), Config())


def test_an_interrupt_stops_the_builder_before_it_is_raised(
    parsed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = Slow(None)
    build = build_of(parsed[0], slow)
    wait, waits = build._done.wait, []

    def interrupted(seconds: float | None = None) -> bool:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt
        return wait(seconds)

    monkeypatch.setattr(build._done, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build.run()
    assert slow.stopped


def test_a_failure_of_the_builder_is_raised_where_the_build_was_asked_for(parsed: Any) -> None:
    with pytest.raises(ValueError, match="of the builder"):
        build_of(parsed[0], Slow(ValueError("of the builder"))).run()
    assert build_of(parsed[0], Slow()).run() == b"plan"


def test_a_failed_build_says_the_first_error_and_where_the_log_is(parsed: Any) -> None:
    library, log, _ = parsed
    log.lines += ["WARNING: w", "ERROR: no kernel.", "ERROR: second"]
    error = engine._build_error(library, log, "main()")
    text = str(error)
    assert text.startswith(f"main(): TensorRT-RTX {library.version} failed to build an engine: ")
    assert "no kernel. Its log: " in text and "second" not in text
    path = Path(text.rpartition("Its log: ")[2])
    assert path.read_text().splitlines() == log.lines
    assert error.diagnostics == log.text
    path.unlink()
    path.parent.rmdir()


def test_an_engine_is_written_over_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "engine").write_bytes(b"longer than the plan")
    Engine(bytearray(b"plan"), 1.0, ()).write(tmp_path / "engine")
    assert (tmp_path / "engine").read_bytes() == b"plan"
