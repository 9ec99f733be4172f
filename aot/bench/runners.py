"""Benchmark runners: eager PyTorch, torch.compile, onnxruntime, IREE at its levels."""

from __future__ import annotations

import difflib
import importlib.util
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pelton.runtime.device.devices import devices
from pelton.runtime.executable import load

from ..compat import dynamo, pytrees
from ..export import export
from ..output import ExportOutput
from ..spec.errors import ExportError
from ..targets.table import TARGETS, find_target
from .job import Job, Subject

DEFAULT_RUNNERS = ("eager", "inductor", "cpu", "onnxruntime", "cuda", "tensorrt")
"""What is compared unless somebody names others."""

_TUNED = "-tuned"
"""The end of a target's name that has it tuned."""

_DRIVERS = {"cuda": "cuda", "rocm": "hip", "vulkan": "vulkan", "vulkan-spirv": "vulkan"}
"""The driver that a target of IREE needs, where it is not the processor's."""


@dataclass
class Prepared:
    """A program ready to be called.

    Attributes:
        call: Calls it with the measured inputs and returns when the results are there.
        seconds: What each stage took: `capture`, `compile`, `first call`.
        artifact: The file or folder that was made, if one was.
        notes: What the compiler gave up or warned of.
    """

    call: Callable[[], Any]
    seconds: dict[str, float] = field(default_factory=dict)
    artifact: Path | None = None
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the time of the block as that of a stage."""
        start = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start


def runner_names() -> list[str]:
    """Return the names of all runners.

    Targets may have an architecture, as in `cuda:sm_80`, or be tuned, as in `cpu-tuned`.

    Example:
        >>> runner_names()[:3]
        ['eager', 'inductor', 'onnxruntime']
    """
    return list(dict.fromkeys((*_OTHERS, *TARGETS)))


def base_of(name: str) -> str:
    """Return the name of a runner without architecture and tuning.

    Example:
        >>> base_of("cuda:sm_80"), base_of("cpu-tuned")
        ('cuda', 'cpu')
    """
    return name.partition(":")[0].removesuffix(_TUNED)


def check_runner(name: str) -> None:
    """Refuse a way that does not exist; one that is only absent here is let pass.

    Raises:
        ExportError: There is none of that name; lists those that there are.
    """
    known = (*runner_names(), *DEFAULT_RUNNERS)
    if base_of(name) not in known:
        close = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise ExportError(f"unknown target {name!r}; known: {', '.join(runner_names())}{hint}")


def absence(name: str, device: str = "cpu") -> str | None:
    """Return why a runner cannot be measured here; None where it can.

    Args:
        name: The runner.
        device: Where eager and inductor are to run.

    Example:
        >>> absence("eager") is None
        True
    """
    base = base_of(name)
    if base in ("eager", "inductor"):
        missing = device.startswith("cuda") and not torch.cuda.is_available()
        return "PyTorch finds no CUDA device" if missing else None
    if base == "onnxruntime":
        return _missing_package("onnxruntime", "onnx", "onnxscript")
    if base == "tensorrt":
        return _tensorrt_absence()
    driver = _DRIVERS.get(base)
    if driver is None or any(found.uri.startswith(driver) for found in devices()):
        return None
    return f"no {driver.upper() if driver == 'cuda' else driver} device on this machine"


def _tensorrt_absence() -> str | None:
    if "tensorrt" not in TARGETS:
        return "this version of Pelton has no such target"
    if not torch.cuda.is_available():
        return "no CUDA device on this machine"
    if importlib.util.find_spec("tensorrt_rtx") is None:
        return _missing_package("tensorrt")
    return None


def _missing_package(*packages: str) -> str | None:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if not missing:
        return None
    are = "is" if len(missing) == 1 else "are"
    return f"{' and '.join(missing)} {are} not installed: pip install {' '.join(missing)}"


def prepare(job: Job, subject: Subject) -> Prepared:
    """Make a program ready to be called in the way of `job`, and call it once.

    Raises:
        PeltonError: It cannot be captured, compiled or loaded.
    """
    maker = _OTHERS.get(base_of(job.runner), _by_target)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        prepared = maker(job, subject)
    own = [str(note.message) for note in said if "/torch/" not in note.filename]
    prepared.notes += dict.fromkeys(own)
    return prepared


def _synchronize(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def _caller(function: Callable[..., Any], subject: Subject, device: str) -> Callable[[], Any]:
    """Return a call of a torch function that ends when its results are there."""
    args, kwargs = subject.values(device)

    def call() -> Any:
        with torch.inference_mode():
            result = function(*args, **kwargs)
        _synchronize(device)
        return result

    return call


def _on(program: Callable[..., Any], device: str) -> Callable[..., Any]:
    return program.to(device) if isinstance(program, nn.Module) else program


def _eager(job: Job, subject: Subject) -> Prepared:
    prepared = Prepared(_caller(_on(subject.program, job.device), subject, job.device))
    with prepared.stage("first call"):
        prepared.call()
    return prepared


def _inductor(job: Job, subject: Subject) -> Prepared:
    """Compile by `torch.compile`: its first call captures, compiles and runs.

    What its back end takes is the compile; a second call is what the first call would take alone;
    the rest is the capture.
    """
    compile_fx = dynamo.inductor()
    compiling = 0.0

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        nonlocal compiling
        start = time.perf_counter()
        try:
            return compile_fx(graph, inputs)
        finally:
            compiling += time.perf_counter() - start

    compiled = torch.compile(_on(subject.program, job.device), backend=backend)
    prepared = Prepared(_caller(compiled, subject, job.device))
    start = time.perf_counter()
    prepared.call()
    whole = time.perf_counter() - start
    with prepared.stage("first call"):
        prepared.call()
    rest = whole - compiling - prepared.seconds["first call"]
    prepared.seconds |= {"capture": max(rest, 0.0), "compile": compiling}
    return prepared


def _captured(prepared: Prepared, subject: Subject) -> ExportOutput:
    with prepared.stage("capture"):
        return export(subject.program, args=subject.args, kwargs=subject.kwargs)


def _by_target(job: Job, subject: Subject) -> Prepared:
    """Compile for a target of Pelton."""
    tuned = job.runner.endswith(_TUNED)
    name = job.runner.removesuffix(_TUNED)
    target, _ = find_target(name)
    suffix = "trtm" if target.name.startswith("tensorrt") else "vmfb"
    path = Path(job.folder, f"{target.name}.{suffix}")
    prepared = Prepared(lambda: None, artifact=path)
    out = _captured(prepared, subject)
    with prepared.stage("compile"):
        out.compile(path, target=name, cache_dir=None, tune=tuned)
    on_gpu = target.name in _DRIVERS or target.name.startswith("tensorrt")
    device = "cuda" if on_gpu and torch.cuda.is_available() else "cpu"
    with prepared.stage("first call"):
        held = out.exported.external_parameters
        parameters: dict[str, dict[str, torch.Tensor]] = {}
        for parameter in held:
            parameters.setdefault(parameter.scope, {})[parameter.name] = parameter.tensor
        executable = load(path, parameters=parameters or None)
        prepared.call = _caller(executable, subject, device)
        prepared.call()
    return prepared


def _onnxruntime(job: Job, subject: Subject) -> Prepared:
    """Run Pelton's ONNX model by onnxruntime on the processor, numpy in and out."""
    import onnxruntime

    path = Path(job.folder, "model.onnx")
    prepared = Prepared(lambda: None, artifact=path)
    out = _captured(prepared, subject)
    with prepared.stage("compile"):
        program = out.to_onnx(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = job.threads
        options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    state = [port.name for port in (*program.inputs, *program.outputs) if port.kind == "state"]
    if state:
        raise ExportError(f"onnxruntime keeps no state between calls; there is {', '.join(state)}")
    leaves = [leaf for leaf in pytrees.tree_leaves(subject.values()) if leaf is not None]
    tensors = [torch.as_tensor(leaf) for leaf in leaves]
    feeds = {
        port.name: tensor.numpy() for port, tensor in zip(program.inputs, tensors, strict=False)
    }
    feeds |= {name: tensor.detach().numpy() for name, tensor in program.parameters.items()}
    prepared.call = lambda: session.run(None, feeds)
    with prepared.stage("first call"):
        prepared.call()
    return prepared


_OTHERS: dict[str, Callable[[Job, Subject], Prepared]] = {
    "eager": _eager,
    "inductor": _inductor,
    "onnxruntime": _onnxruntime,
}
"""The runners that are no targets of Pelton."""
