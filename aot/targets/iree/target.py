"""IREE as a target: CPU, CUDA, ROCm and Vulkan, in one `.vmfb`."""

from __future__ import annotations

import difflib
import hashlib
import importlib.metadata
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pelton.codegen import (
    CompilerFailed,
    CompilerTimedOut,
    PhasePasses,
    compile_file,
    compile_file_isolated,
    cpu_target,
    output_channel_tile,
)
from pelton.runtime.artifacts.vmfb import VmfbInfo, append_info
from pelton.runtime.device.cpu import WORKER_STACK_BYTES, cpu_identity

from ...ir.exported import ExportedModule
from ...ir.module import (
    device_count,
    has_dynamic_convolutions,
    has_dynamic_sizes,
    has_empty_sizes,
    parameters_of,
)
from ...spec.errors import ExportError
from ..base import Artifact, make_options
from .errors import compile_error
from .faults.group_norm import decompose_group_norm
from .faults.half_attention import upcast_attention
from .faults.index_bounds import bound_indices
from .faults.nan_propagation import propagate_nans
from .faults.range_reduction import replace_inexact_functions
from .faults.splat_constants import outline_splat_constants
from .levels import (
    CHANNELS_LAST,
    CPU_OPT_LEVELS,
    CPU_VARIANTS,
    DATA_TILING,
    DEFAULT_LEVEL,
    GPU_LEVELS,
)

CUDA_ARCHITECTURES = ("sm_60", "sm_70", "sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_120")
"""The CUDA architectures that IREE 3.13 knows."""

CUDA_SUBSTITUTES = {
    "sm_90": "sm_89", "sm_90a": "sm_89", "sm_100": "sm_89", "sm_100a": "sm_89", "sm_103": "sm_89",
    "hopper": "sm_89", "h100": "sm_89", "h200": "sm_89", "h20": "sm_89", "blackwell": "sm_89",
    "b100": "sm_89", "b200": "sm_89", "l4": "sm_89", "l40": "sm_89", "l40s": "sm_89",
}  # fmt: skip
"""Newer architectures, and the newest one known to IREE, whose code the driver recompiles."""

CUDA_PRODUCTS = (
    "a100", "a10", "ampere", "turing", "volta", "pascal", "ada", "rtx4090", "rtx4080", "rtx4070",
    "rtx3090", "rtx3080", "rtx2080", "v100", "t4",
)  # fmt: skip
"""Names of products and families that IREE knows itself."""

_STACK_LIMIT = "exceeded stack allocation limit"
_LARGE_STACK = f"--iree-llvmcpu-stack-allocation-limit={WORKER_STACK_BYTES // 4}"

_DEVICES = {"llvm-cpu": "local", "vmvx": "local", "rocm": "hip", "vulkan-spirv": "vulkan"}
"""What IREE calls the devices of a backend, where the backend's own name is not theirs."""

_COMMON_FLAGS = (
    "--iree-input-type=auto",
    "--iree-input-demote-f64-to-f32=false",
    "--iree-input-demote-i64-to-i32=false",
    "--iree-opt-strip-assertions=false",  # checks of indices and sizes, which level 3 removes
)


@dataclass(frozen=True)
class IreeOptions:
    """Options of a compile with IREE.

    Attributes:
        optimization_level: 0 to 5; see `CPU_OPT_LEVELS`. None: `DEFAULT_LEVEL`.
        target_cpu: For processors: `host`, `generic`, or a name that LLVM knows.
        target_cpu_features: More features, in LLVM's form `+avx2,-avx512f`.
        arch: For GPUs: the architecture, such as `sm_80` or `gfx942`.
        flags: More flags of `iree-compile`.
        variant: For processors: code of another kind than the level's, which a tuning found to be
            faster: a name of `CPU_VARIANTS`. Where IREE fails at it, the compile fails.
        isolate: Compile in a child process, so that a crash of the compiler is an error and an
            interrupt ends it. It costs no more time than to compile in this process.
        timeout_s: The most seconds that a compile may take, all attempts together; None: any time.

    Raises:
        ExportError: A value is impossible.
    """

    optimization_level: int | None = None
    target_cpu: str = "host"
    target_cpu_features: str = ""
    arch: str = ""
    flags: Sequence[str] = ()
    variant: str = ""
    isolate: bool = True
    timeout_s: float | None = None

    def __post_init__(self) -> None:
        level = self.optimization_level
        if level is not None and (type(level) is not int or level not in CPU_OPT_LEVELS):
            raise ExportError(f"optimization_level must be 0 to 5, got {level!r}")
        if self.variant and self.variant not in CPU_VARIANTS:
            known = ", ".join(CPU_VARIANTS)
            raise ExportError(f"unknown variant {self.variant!r}; known: {known}")
        if isinstance(self.flags, str) or not all(isinstance(flag, str) for flag in self.flags):
            raise ExportError(f"flags must be a sequence of texts, got {self.flags!r}")
        object.__setattr__(self, "flags", tuple(self.flags))
        limit = self.timeout_s
        if limit is not None and (type(limit) not in (int, float) or not limit > 0):
            raise ExportError(f"timeout_s must be a number of seconds above 0, got {limit!r}")
        if limit is not None and not self.isolate:
            raise ExportError("timeout_s needs a process that can be ended; leave isolate=True")

    @property
    def level(self) -> int:
        """The optimisation level, with the default in place of None."""
        return DEFAULT_LEVEL if self.optimization_level is None else self.optimization_level


@dataclass(frozen=True)
class IreeTarget:
    """A backend of IREE under the name that users give.

    Attributes:
        name: The name.
        backend: IREE's own name of the backend.
    """

    name: str
    backend: str

    @property
    def timing_cache(self) -> bool:
        """IREE measures nothing while it compiles."""
        return False

    @property
    def holds_parameters(self) -> bool:
        """External parameters stay outside; `runtime.load` takes them."""
        return False

    def options(self, given: Mapping[str, Any]) -> IreeOptions:
        """Return the options from keyword arguments.

        Raises:
            ExportError: An option is unknown or has an impossible value.
        """
        options = make_options(IreeOptions, given, self.name)
        if self.backend == "cuda" and options.arch:
            cuda_architecture(options.arch)
        if self.backend == "rocm" and not options.arch:
            raise ExportError("target 'rocm' needs an architecture, as in 'rocm:gfx942'")
        if self.backend != "llvm-cpu" and options.variant:
            raise ExportError(f"target {self.name!r} has no variants; they are for processors")
        return options

    def checking_device(self, options: IreeOptions) -> str | None:
        """Programs are checked where they run."""
        return None

    def variants(self, options: IreeOptions) -> dict[str, IreeOptions]:
        """Return what a tuning tries: options by the name of their variant."""
        if self.backend != "llvm-cpu":
            return {}
        return {name: replace(options, variant=name) for name in CPU_VARIANTS}

    def identity(self, options: IreeOptions) -> Mapping[str, Any]:
        """Return all that decides the artifact beside the module, without running the compiler."""
        host = self.backend == "llvm-cpu" and options.target_cpu == "host"
        return {
            "backend": self.backend,
            "optimization_level": options.level,
            "target_cpu": options.target_cpu,
            "target_cpu_features": options.target_cpu_features,
            "arch": options.arch,
            "flags": [[flag, _named_file(flag)] for flag in options.flags],
            "variant": options.variant,
            "versions": _versions(),
            "processor": cpu_identity() if host else None,
        }

    def build(self, exported: ExportedModule, path: Path, options: IreeOptions) -> Artifact:
        """Compile a module to a `.vmfb`.

        Args:
            exported: The module.
            path: The file to write.
            options: What `options` returned.

        Raises:
            CompileError: IREE failed; has the diagnostics and a reproducer.
        """
        module_op = exported.module_op.clone().operation
        if _DEVICES.get(self.backend) == "local":
            upcast_attention(module_op)
            replace_inexact_functions(module_op)
        else:
            decompose_group_norm(module_op)
        bound_indices(module_op)
        propagate_nans(module_op)
        outline_splat_constants(module_op)
        with tempfile.TemporaryDirectory(prefix="pelton-") as folder:
            source = Path(folder, "module.mlirbc")
            with open(source, "wb") as file:
                module_op.write_bytecode(file)
            target, flags, notes = self._target(source, options, device_count(module_op))
            parameters = parameters_of(module_op)
            attempts = self._attempts(options.level, bool(parameters))
            if options.variant:
                attempts = {CPU_VARIANTS[options.variant]: options.level}
            tile = 0
            if self.backend == "llvm-cpu" and has_dynamic_convolutions(module_op):
                tile = output_channel_tile(target["features"])
            passes = PhasePasses(
                has_dynamic_sizes(module_op), tile, empty_sizes=has_empty_sizes(module_op)
            )
            try:
                compiled = self._compile(source, path, options, flags, attempts, passes)
            except CompilerTimedOut:
                raise compile_error(
                    f"error: it took longer than timeout_s={options.timeout_s:g}; give it more "
                    "time, or a lower optimization_level",
                    source,
                    [*flags, *next(iter(attempts)), *options.flags],
                    f"target {self.name!r}",
                ) from None
        stated = _stated(options, [*notes, *compiled.notes])
        append_info(path, VmfbInfo(target, _versions(), parameters, stated))
        return Artifact(path, (*notes, *(compiled.notes if compiled.worth_a_warning else ())))

    def _target(
        self, source: Path, options: IreeOptions, devices: int
    ) -> tuple[dict[str, Any], list[str], list[str]]:
        """Return what the artifact says of its target, the flags for it, and notes."""
        stated, chosen = self._devices(devices)
        target, flags, notes = self._architecture(source, options, [*chosen, *_COMMON_FLAGS])
        return {**target, **stated}, flags, notes

    def _devices(self, count: int) -> tuple[dict[str, int], list[str]]:
        """Return what the artifact says of its devices, and the flags that declare them.

        Args:
            count: How many devices the module names; 0: it is for any one.
        """
        if count == 0:
            return {}, [f"--iree-hal-target-backends={self.backend}"]
        kind = _DEVICES.get(self.backend, self.backend)
        flags = [f"--iree-hal-target-device={kind}[{ordinal}]" for ordinal in range(count)]
        if kind == "local":
            flags.append(f"--iree-hal-local-target-device-backends={self.backend}")
        return {"devices": count}, flags

    def _architecture(
        self, source: Path, options: IreeOptions, flags: list[str]
    ) -> tuple[dict[str, Any], list[str], list[str]]:
        if self.backend == "llvm-cpu":
            flags.append(f"--iree-llvmcpu-target-cpu={options.target_cpu}")
            if options.target_cpu_features:
                flags.append(f"--iree-llvmcpu-target-cpu-features={options.target_cpu_features}")
            try:
                made_for = cpu_target(options.target_cpu, options.target_cpu_features)
            except CompilerFailed as error:
                what = f"a program for processor {options.target_cpu!r}"
                raise compile_error(error.diagnostics, source, flags, what) from error
            return {"backend": self.backend, **made_for}, flags, []
        if self.backend == "cuda" and options.arch:
            arch, note = cuda_architecture(options.arch)
            flags.append(f"--iree-cuda-target={arch}")
            return {"backend": "cuda", "gpu": arch}, flags, [note] if note else []
        if self.backend == "rocm":
            flags.append(f"--iree-rocm-target={options.arch}")
        if self.backend == "vulkan-spirv" and options.arch:
            flags.append(f"--iree-vulkan-target={options.arch}")
        gpu = {"gpu": options.arch} if options.arch else {}
        return {"backend": self.backend, **gpu}, flags, []

    def _compile(
        self,
        source: Path,
        path: Path,
        options: IreeOptions,
        flags: Sequence[str],
        attempts: Mapping[tuple[str, ...], int],
        passes: PhasePasses,
    ) -> _Compiled:
        """Compile; where the optimised pipeline fails on a limit of its own, with a simpler one.

        Args:
            source: The module.
            path: The file to write.
            options: The options.
            flags: The flags of all attempts.
            attempts: The flags of each, with its level.
            passes: The passes to run between the phases.

        Raises:
            CompileError: IREE failed.
            CompilerTimedOut: It took longer than `timeout_s`.
        """
        run = _compiler(options)
        as_tiled = replace(passes, channel_tile=0)
        failures: list[CompilerFailed] = []
        tiling: CompilerFailed | None = None
        remaining = list(attempts.items())
        while remaining:
            optimization, level = remaining.pop(0)
            asked = [*flags, *optimization, *options.flags]
            channels_last = any(CHANNELS_LAST in flag for flag in optimization)
            try:
                if passes.channel_tile and channels_last:
                    try:
                        run(source, path, asked, passes)
                        return _Compiled(options.level, level, failures)
                    except CompilerFailed as error:
                        tiling = error
                run(source, path, asked, as_tiled)
            except CompilerFailed as error:
                failures.append(error)
                if len(failures) > 1 and failures[-2].diagnostics == error.diagnostics:
                    remaining = remaining[-1:]  # the simplest; the others would fail as well
                continue
            return _Compiled(options.level, level, failures, tiling=tiling)
        if any(_STACK_LIMIT in failure.diagnostics for failure in failures):
            # Code for tiles as large as it likes; our runtime gives its threads the stack for it.
            simplest = list(attempts)[-1]
            try:
                run(source, path, [*flags, *simplest, *options.flags, _LARGE_STACK], as_tiled)
                return _Compiled(options.level, attempts[simplest], failures, large_stack=True)
            except CompilerFailed as error:
                failures.append(error)
        asked = [*flags, *next(iter(attempts)), *options.flags]
        name = f"target {self.name!r}"
        raise compile_error(failures[0].diagnostics, source, asked, name) from None

    def _attempts(self, level: int, external: bool) -> dict[tuple[str, ...], int]:
        """Return the flags to try, in order, each with its level.

        Args:
            level: The level that the user asked for.
            external: Whether the module has external parameters.
        """
        levels = CPU_OPT_LEVELS if self.backend == "llvm-cpu" else GPU_LEVELS
        attempts: dict[tuple[str, ...], int] = {}
        for number in (level, *(lower for lower in (4, 3, 2, 1) if lower < level)):
            shared = external and number <= DEFAULT_LEVEL
            flags = tuple(flag for flag in levels[number] if not (shared and flag == DATA_TILING))
            attempts.setdefault(flags, number)
        return attempts


@dataclass(frozen=True)
class _Compiled:
    """At which level a compile worked, and how those before failed."""

    asked: int
    used: int
    failures: Sequence[CompilerFailed]
    large_stack: bool = False
    tiling: CompilerFailed | None = None

    @property
    def notes(self) -> list[str]:
        """What the artifact says of it."""
        if self.tiling is not None:
            refusal = f"IREE refused larger convolution tiles: {_first_line(self.tiling)}"
            return [refusal, *replace(self, tiling=None).notes]
        if not self.failures:
            return []
        reason = _first_line(self.failures[0])
        if self.large_stack:
            return [
                "compiled with large tiles on the stack: IREE's own tools run it with "
                f"--task_worker_stack_size={WORKER_STACK_BYTES}"
            ]
        return [
            f"compiled with optimization level {self.used}, as IREE failed at level {self.asked} "
            f"(optimization_level={self.used} would save that attempt): {reason}"
        ]

    @property
    def worth_a_warning(self) -> bool:
        """Whether more is lost than the data tiling that comes with the default level."""
        return (
            bool(self.failures)
            and not self.large_stack
            and (self.asked, self.used) != (DEFAULT_LEVEL, 2)
        )


def _first_line(failure: CompilerFailed) -> str:
    lines = failure.diagnostics.strip().splitlines()
    return lines[0][:200] if lines else "no reason given"


def _compiler(options: IreeOptions) -> Callable[[Path, Path, Sequence[str], PhasePasses], None]:
    """Return what compiles a file, within the time that is left of the limit at each call."""
    if not options.isolate:
        return compile_file
    if options.timeout_s is None:
        return compile_file_isolated
    end = time.monotonic() + options.timeout_s

    def compile_in_time(
        source: Path, path: Path, flags: Sequence[str], passes: PhasePasses
    ) -> None:
        left = max(0.0, end - time.monotonic())
        compile_file_isolated(source, path, flags, passes, timeout_s=left)

    return compile_in_time


def cuda_architecture(name: str) -> tuple[str, str]:
    """Return the architecture to compile for, and a note where it is a substitute.

    Raises:
        ExportError: IREE does not know it; lists those that it knows.

    Example:
        >>> cuda_architecture("sm_80")
        ('sm_80', '')
        >>> cuda_architecture("h100")[0]
        'sm_89'
    """
    lowered = name.lower()
    if lowered in CUDA_ARCHITECTURES or lowered in CUDA_PRODUCTS:
        return lowered, ""
    substitute = CUDA_SUBSTITUTES.get(lowered)
    if substitute is not None:
        return substitute, (
            f"IREE does not know {name}; the code is for {substitute}, which the driver recompiles"
        )
    known = (*CUDA_ARCHITECTURES, *CUDA_SUBSTITUTES, *CUDA_PRODUCTS)
    close = difflib.get_close_matches(lowered, known, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise ExportError(f"unknown CUDA architecture {name!r}; known: {', '.join(known)}{hint}")


def _named_file(flag: str) -> str | None:
    """Return the SHA-256 of the file that a flag names; None where it names none."""
    path = Path(flag.partition("=")[2] or flag)
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _versions() -> dict[str, str]:
    packages = ("pelton", "iree-base-compiler")
    return {package: importlib.metadata.version(package) for package in packages}


def _stated(options: IreeOptions, notes: Sequence[str]) -> dict[str, Any]:
    stated: dict[str, Any] = {"optimization_level": options.level, "flags": list(options.flags)}
    if options.variant:
        stated["variant"] = options.variant
    return {**stated, "notes": list(notes)} if notes else stated
