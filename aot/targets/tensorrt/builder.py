"""The program that builds an engine: in a process of its own, which may crash without harm.

It is run as a file, and imports TensorRT and the standard library only, as PyTorch takes seconds to
load. What it tells goes to standard output, a line of JSON for each log message and each step; the
last line says how the build ended.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def parse(trt: Any, logger: Any, model: bytes | Path) -> tuple[Any, Any, Any] | None:
    """Return the builder, the network and the parser of an ONNX model; None if it is refused.

    Args:
        trt: The module of TensorRT or TensorRT-RTX.
        logger: The library's logger.
        model: The model, or the file that has it.
    """
    builder = trt.Builder(logger)
    network = builder.create_network(network_flags(trt))
    parser = trt.OnnxParser(network, logger)  # it holds the weights
    parsed = parser.parse_from_file(str(model)) if isinstance(model, Path) else parser.parse(model)
    if not parsed:
        return None
    for layer in map(network.get_layer, range(network.num_layers)):
        if layer.type == trt.LayerType.ATTENTION_INPUT:
            # Attention that no fused kernel takes fails to build unless it may be decomposed.
            layer.__class__ = trt.IAttentionInputLayer
            layer.attention.decomposable = True
    return builder, network, parser


def network_flags(trt: Any) -> int:
    """Return the flags of a network whose element types are exactly the model's."""
    return 1 << int(trt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)


def configured(trt: Any, builder: Any, job: Mapping[str, Any]) -> Any:
    """Return the configuration of a build.

    Args:
        trt: The module of TensorRT or TensorRT-RTX.
        builder: Its builder.
        job: The settings, as `engine.job_of` gives them.
    """
    config = builder.create_builder_config()
    config.builder_optimization_level = job["level"]
    if job["workspace_bytes"] is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, job["workspace_bytes"])
    if job["refit"]:
        config.set_flag(trt.BuilderFlag.REFIT)
    if job["detailed"]:
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if job["compute_capabilities"]:
        config.num_compute_capabilities = len(job["compute_capabilities"])
        for index, capability in enumerate(job["compute_capabilities"]):
            name = f"SM{capability.replace('.', '')}"
            config.set_compute_capability(trt.ComputeCapability.__members__[name], index)
    return config


def build(trt: Any, logger: Any, job: Mapping[str, Any]) -> dict[str, Any]:
    """Build an engine and write its plan; return how it ended.

    Args:
        trt: The module of TensorRT or TensorRT-RTX.
        logger: Its logger.
        job: As `engine.job_of` gives it.

    Returns:
        `seconds` where it was built, `profile` where TensorRT refuses that one; else nothing.
    """
    parsed = parse(trt, logger, Path(job["model"]))
    if parsed is None:
        return {}
    builder, network, _ = parsed
    config = configured(trt, builder, job)
    for profile in job["profiles"]:
        made = builder.create_optimization_profile()
        for name, points in profile["inputs"].items():
            set_shape = made.set_shape_input if name in job["hosts"] else made.set_shape
            set_shape(name, *points)
        if config.add_optimization_profile(made) < 0:
            return {"profile": profile["name"]}
    timings = None
    if job["timing_cache"] is not None:
        path = Path(job["timing_cache"])
        timings = config.create_timing_cache(path.read_bytes() if path.exists() else b"")
        config.set_timing_cache(timings, ignore_mismatch=False)
    config.progress_monitor = _monitor(trt)
    start = time.perf_counter()
    plan = builder.build_serialized_network(network, config)
    if plan is None:
        return {}
    seconds = time.perf_counter() - start
    Path(job["plan"]).write_bytes(memoryview(plan))
    if timings is not None:
        Path(job["new_timings"]).write_bytes(memoryview(config.get_timing_cache().serialize()))
    return {"seconds": seconds}


def _tell(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def _logger(trt: Any) -> Any:
    class Logger(trt.ILogger):  # type: ignore[misc]  # known when it runs
        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, message: str) -> None:
            if severity <= trt.ILogger.Severity.WARNING:
                _tell(log=f"{severity.name}: {' '.join(message.split())}")

    return Logger()


def _monitor(trt: Any) -> Any:
    """Return a progress monitor that tells the steps of the outermost phase."""

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]  # known when it runs
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)
            self._phases: dict[str, int] = {}

        def phase_start(self, name: str, parent: str | None, steps: int) -> None:
            if parent is None:
                self._phases[name] = steps

        def step_complete(self, name: str, step: int) -> bool:
            if name in self._phases:
                _tell(step=[name, step + 1, self._phases[name]])
            return True

        def phase_finish(self, name: str) -> None:
            self._phases.pop(name, None)

    return Monitor()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # until the parent closes it, or ends
    os._exit(1)


def main() -> None:
    """Build the engine of a job, the path of a JSON file."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    job = json.loads(Path(sys.argv[1]).read_text())
    trt = importlib.import_module(job["library"])
    _tell(**build(trt, _logger(trt), job), ended=True)
    os._exit(0)  # without the time that the library's end takes


if __name__ == "__main__":
    main()
