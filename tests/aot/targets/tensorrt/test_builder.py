"""The program that builds an engine: what it tells TensorRT, and when it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("tensorrt_rtx")
pytest.importorskip("onnxscript")

from pelton.aot.targets.tensorrt import builder
from pelton.aot.targets.tensorrt.engine import job_of
from pelton.aot.targets.tensorrt.library import open_library
from tests.aot.targets.tensorrt.models import program_of
from tests.aot.targets.tensorrt.test_engine import RELU, X, settings


def test_the_builder_is_told_what_the_user_asked_for(tmp_path: Path) -> None:
    library = open_library("rtx")
    model = program_of(RELU).save(tmp_path / "model.onnx")
    trt = library.module
    options = settings("8.0", "12.0", workspace_bytes=1 << 20, weights="refit", layer_info=True)
    maker = trt.Builder(trt.Logger())
    config = builder.configured(trt, maker, job_of(library, model, [X], [], options, model.parent))
    assert config.builder_optimization_level == 0
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == 1 << 20
    assert config.get_flag(trt.BuilderFlag.REFIT)
    assert config.profiling_verbosity == trt.ProfilingVerbosity.DETAILED
    assert config.num_compute_capabilities == 2
    assert config.get_compute_capability(1) == trt.ComputeCapability.SM120
    plain = job_of(library, model, [X], [], settings(), model.parent)
    assert not builder.configured(trt, maker, plain).get_flag(trt.BuilderFlag.REFIT)


def test_the_builder_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    job = tmp_path / "job.json"
    os.mkfifo(job)  # that nobody writes to
    child = subprocess.Popen(
        [sys.executable, str(builder.__file__), str(job)], stdin=subprocess.PIPE
    )
    assert child.stdin is not None
    time.sleep(0.1)
    assert child.poll() is None
    child.stdin.close()
    assert child.wait(30) == 1
