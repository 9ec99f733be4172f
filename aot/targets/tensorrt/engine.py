"""The build of an engine: from a network and its profiles to the plan."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pelton.runtime.artifacts.entry_points import EngineProfile, Port
from pelton.runtime.files import atomic_write
from pelton.runtime.progress import advance

from ...spec.errors import CompileError, ExportError
from . import builder
from .library import FLAVORS, Library, Log
from .options import TensorRTOptions


@dataclass(frozen=True)
class BuildSettings:
    """The settings of a build beside the network.

    Attributes:
        options: The user's options.
        compute_capabilities: The GPUs to build for.
    """

    options: TensorRTOptions
    compute_capabilities: tuple[str, ...]


@dataclass(frozen=True)
class Engine:
    """A built engine.

    Attributes:
        plan: The file of its bytes.
        seconds: How long it took.
        warnings: What TensorRT warned of.
    """

    plan: Path
    seconds: float
    warnings: tuple[str, ...]


def build_engine(
    library: Library,
    model: Path,
    inputs: Sequence[Port],
    profiles: Sequence[EngineProfile],
    settings: BuildSettings,
    folder: Path,
    where: str,
) -> Engine:
    """Return the engine of a model, built in a child process.

    An exception that ends the wait, such as an interrupt (Ctrl-C), ends the child.

    Args:
        library: The library.
        model: The file of the ONNX model, which the library takes.
        inputs: The inputs of the engine.
        profiles: Its optimisation profiles.
        settings: What else to tell the builder.
        folder: Where files may be put; the plan is `engine` there.
        where: The function, for messages.

    Raises:
        CompileError: TensorRT failed or crashed; has its log.
        ExportError: TensorRT refuses a profile.
    """
    job = job_of(library, model, inputs, profiles, settings, folder)
    log, ended, status = _run(job, folder)
    refused = [profile for profile in profiles if profile.name == ended.get("profile")]
    if refused:
        raise ExportError(
            f"{where}: TensorRT refuses profile {refused[0].name!r}: {refused[0].inputs}"
        )
    if "seconds" not in ended:
        raise _build_error(library, log, where, status)
    if job["timing_cache"] is not None:
        with atomic_write(job["timing_cache"]) as file:
            file.write(Path(job["new_timings"]).read_bytes())
    warnings = [line.partition(": ")[2] for line in log.lines if line.startswith("WARNING: ")]
    return Engine(Path(job["plan"]), ended["seconds"], tuple(dict.fromkeys(warnings)))


def job_of(
    library: Library,
    model: Path,
    inputs: Sequence[Port],
    profiles: Sequence[EngineProfile],
    settings: BuildSettings,
    folder: Path,
) -> dict[str, Any]:
    """Return all that `builder.py` needs, as JSON; parameters as for `build_engine`."""
    options, is_rtx = settings.options, library.flavor == "rtx"
    cache = None if is_rtx or options.timing_cache is None else str(options.timing_cache)
    return {
        "library": FLAVORS[library.flavor][0],
        "model": str(model),
        "plan": str(folder / "engine"),
        "profiles": [
            {
                "name": profile.name,
                "inputs": {n: [b.min, b.opt, b.max] for n, b in profile.inputs.items()},
            }
            for profile in profiles
        ],
        "hosts": [port.name for port in inputs if port.host],
        "level": options.level,
        "workspace_bytes": options.workspace_bytes,
        "refit": options.weights == "refit",
        "detailed": options.layer_info,
        "compute_capabilities": list(settings.compute_capabilities) if is_rtx else [],
        "timing_cache": cache,
        "new_timings": str(folder / "timings"),
    }


def _run(job: dict[str, Any], folder: Path) -> tuple[Log, dict[str, Any], int]:
    """Build in a child process; return its log, how it says that it ended, and its status."""
    stated, noise = folder / "job.json", folder / "stderr.txt"
    stated.write_text(json.dumps(job))
    log, ended = Log(), dict[str, Any]()
    with (
        open(noise, "wb") as stderr,
        subprocess.Popen(
            [sys.executable, str(builder.__file__), str(stated)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            start_new_session=True,
        ) as child,
    ):
        try:
            assert child.stdout is not None
            for line in child.stdout:
                told = json.loads(line)
                if "log" in told:
                    log.lines.append(told["log"])
                elif "step" in told:
                    advance(*told["step"])
                else:
                    ended = told
            status = child.wait()
        except BaseException:
            child.kill()
            raise
    if status:
        log.lines += [f"ERROR: {line}" for line in noise.read_text(errors="replace").splitlines()]
    return log, ended, status


def inspected(library: Library, logger: Any, engine: Engine) -> Any:
    """Return what TensorRT's engine inspector says of the layers, as JSON; None without a GPU.

    It reads loaded engines only, and loading one takes a GPU that the engine is for.

    Args:
        library: TensorRT or TensorRT-RTX.
        logger: Its logger.
        engine: The engine that was built.
    """
    if not torch.cuda.is_available():
        return None
    trt = library.module
    loaded = trt.Runtime(logger).deserialize_cuda_engine(engine.plan.read_bytes())
    if loaded is None:
        return None
    inspector = loaded.create_engine_inspector()
    return json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))


def _build_error(library: Library, log: Log, where: str, status: int) -> CompileError:
    folder = Path(tempfile.mkdtemp(prefix="pelton-tensorrt-"))
    diagnostics = folder / "log.txt"
    diagnostics.write_text(log.text + "\n")
    reason = log.errors[0] if log.errors else "it gave no reason"
    if status < 0:
        last = f", after {log.errors[-1]}" if log.errors else ""
        reason = f"its builder crashed (signal {-status}){last}"
    return CompileError(
        f"{where}: {FLAVORS[library.flavor][1]} {library.version} failed to build an engine: "
        f"{reason[:400].rstrip('.')}. Its log: {diagnostics}",
        diagnostics=log.text,
        reproducer=None,
    )
