"""The build of an engine: from a network and its profiles to the plan."""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pelton.runtime.artifacts.entry_points import EngineProfile, Port
from pelton.runtime.files import atomic_write
from pelton.runtime.progress import advance

from ...spec.errors import CompileError, ExportError
from .library import FLAVORS, Library, Log
from .network import Network
from .options import TensorRTOptions

_POLL_SECONDS = 0.05


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
        plan: Its bytes; valid while this lives.
        seconds: How long it took.
        warnings: What TensorRT warned of.
    """

    plan: Any
    seconds: float
    warnings: tuple[str, ...]

    def write(self, path: Path) -> None:
        """Write the plan to a file."""
        with open(path, "wb") as file:
            file.write(memoryview(self.plan))


def build_engine(
    library: Library,
    log: Log,
    network: Network,
    inputs: Sequence[Port],
    profiles: Sequence[EngineProfile],
    settings: BuildSettings,
    where: str,
) -> Engine:
    """Return the engine of a network.

    An interrupt (Ctrl-C) cancels the build and is raised when TensorRT has stopped.

    Args:
        library: The library.
        log: What it logs.
        network: The network.
        inputs: Its inputs.
        profiles: Its optimisation profiles.
        settings: What else to tell the builder.
        where: The function, for messages.

    Raises:
        CompileError: TensorRT failed; has its log.
        ExportError: TensorRT refuses a profile.
    """
    config = _configured(library, network, settings)
    hosts = {port.name for port in inputs if port.host}
    for profile in profiles:
        _add_profile(network, config, profile, hosts, where)
    timings = _timing_cache(library, config, settings.options)
    start = time.perf_counter()
    plan = _Build(library, network, config).run()
    if plan is None:
        raise _build_error(library, log, where)
    if timings is not None and settings.options.timing_cache is not None:
        with atomic_write(settings.options.timing_cache) as file:
            file.write(memoryview(config.get_timing_cache().serialize()))
    warnings = [line.partition(": ")[2] for line in log.lines if line.startswith("WARNING: ")]
    return Engine(plan, time.perf_counter() - start, tuple(dict.fromkeys(warnings)))


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
    loaded = trt.Runtime(logger).deserialize_cuda_engine(memoryview(engine.plan))
    if loaded is None:
        return None
    inspector = loaded.create_engine_inspector()
    return json.loads(inspector.get_engine_information(trt.LayerInformationFormat.JSON))


def _configured(library: Library, network: Network, settings: BuildSettings) -> Any:
    trt, options = library.module, settings.options
    config = network.builder.create_builder_config()
    config.builder_optimization_level = options.level
    if options.workspace_bytes is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, options.workspace_bytes)
    if options.weights == "refit":
        config.set_flag(trt.BuilderFlag.REFIT)
    if options.layer_info:
        config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    if library.flavor == "rtx":
        config.num_compute_capabilities = len(settings.compute_capabilities)
        for index, capability in enumerate(settings.compute_capabilities):
            name = f"SM{capability.replace('.', '')}"
            config.set_compute_capability(trt.ComputeCapability.__members__[name], index)
    return config


def _add_profile(
    network: Network, config: Any, profile: EngineProfile, hosts: set[str], where: str
) -> None:
    made = network.builder.create_optimization_profile()
    for name, bounds in profile.inputs.items():
        points = (bounds.min, bounds.opt, bounds.max)
        if name in hosts:
            made.set_shape_input(name, *points)
        else:
            made.set_shape(name, *points)
    if config.add_optimization_profile(made) < 0:
        raise ExportError(f"{where}: TensorRT refuses profile {profile.name!r}: {profile.inputs}")


def _timing_cache(library: Library, config: Any, options: TensorRTOptions) -> Any:
    """Set the timings that builds share; None where none are kept."""
    if library.flavor == "rtx" or options.timing_cache is None:
        return None
    path = Path(options.timing_cache)
    timings = config.create_timing_cache(path.read_bytes() if path.exists() else b"")
    config.set_timing_cache(timings, ignore_mismatch=False)
    return timings


class _Build:
    """One run of the builder, in a thread of its own so that the caller's can be interrupted."""

    def __init__(self, library: Library, network: Network, config: Any) -> None:
        self._network = network
        self._config = config
        self._cancelled, self._done = threading.Event(), threading.Event()
        self._plan: Any = None
        self._failure: BaseException | None = None
        config.progress_monitor = _monitor(library.module, self._cancelled)

    def run(self) -> Any:
        """Return the plan, or None where the build failed."""
        threading.Thread(target=self._work, name="pelton-tensorrt-build").start()
        try:
            while not self._done.wait(_POLL_SECONDS):  # an interrupted join would lose the thread
                pass
        except BaseException:
            self._cancelled.set()
            self._done.wait()
            raise
        if self._failure is not None:
            raise self._failure
        return self._plan

    def _work(self) -> None:
        try:
            builder = self._network.builder
            self._plan = builder.build_serialized_network(self._network.definition, self._config)
        except BaseException as error:  # raised again in the caller's thread
            self._failure = error
        finally:
            self._done.set()


def _monitor(trt: Any, cancelled: threading.Event) -> Any:
    """Return a progress monitor that reports the outermost phase, and cancels on demand."""

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]  # known when it runs
        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)
            self._phases: dict[str, int] = {}

        def phase_start(self, name: str, parent: str | None, steps: int) -> None:
            if parent is None:
                self._phases[name] = steps

        def step_complete(self, name: str, step: int) -> bool:
            if name in self._phases:
                advance(name, step + 1, self._phases[name])
            return not cancelled.is_set()

        def phase_finish(self, name: str) -> None:
            self._phases.pop(name, None)

    return Monitor()


def _build_error(library: Library, log: Log, where: str) -> CompileError:
    folder = Path(tempfile.mkdtemp(prefix="pelton-tensorrt-"))
    diagnostics = folder / "log.txt"
    diagnostics.write_text(log.text + "\n")
    reason = log.errors[0] if log.errors else "it gave no reason"
    return CompileError(
        f"{where}: {FLAVORS[library.flavor][1]} {library.version} failed to build an engine: "
        f"{reason[:400].rstrip('.')}. Its log: {diagnostics}",
        diagnostics=log.text,
        reproducer=None,
    )
