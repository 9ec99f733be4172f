"""Tuning: variants of a module's code are timed, and the fastest correct one is chosen.

Right is what PyTorch computes from the module itself, for the inputs that are timed. The variants
run in turns, so that they meet the same machine.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from pelton.runtime.archive import ParameterSource
from pelton.runtime.checked import Decoder
from pelton.runtime.executable import Executable, load
from pelton.runtime.files import StrPath
from pelton.runtime.progress import stage

from ..capture.example_inputs import example_call
from ..compat import pytrees
from ..ir.digest import compile_key, module_digest
from ..ir.exported import ExportedModule, HasExported
from ..ir.module import signatures_of
from ..raising.torch_program import to_torch
from ..spec.config import CONFIGURED, Configured, config
from ..spec.errors import CompileError, DeviceError, ExportError, PeltonError
from ..targets.cache import CachedArtifact, CompileCache
from ..targets.request import CompileRequest, Storage, compile_request

FORMAT = 1
"""Version of what is kept of a tuning. 1: the first."""

Call = tuple[Sequence[Any], Mapping[str, Any]]
"""The positional and keyword arguments of a call."""

_TURN_SECONDS = 0.02
_TOLERANCES = {torch.float16: 2e-2, torch.bfloat16: 5e-2, torch.float64: 1e-6}
_TOLERANCE = 1e-3


@runtime_checkable
class Tunable(Protocol):
    """A target that has variants to choose from."""

    def variants(self, options: Any) -> Mapping[str, Any]:
        """Return the options of each variant, by its name."""


@dataclass(frozen=True)
class Trial:
    """One variant of a tuning.

    Attributes:
        variant: Its name, as the target's option `variant` takes it.
        milliseconds: The median time of a call, summed over the entry points; None where it was
            not timed.
        problem: Why it was not timed: it does not compile or run, or its results are wrong.
    """

    variant: str
    milliseconds: float | None = None
    problem: str = ""


@dataclass(frozen=True)
class Tuned:
    """What a tuning found.

    Attributes:
        variant: The fastest variant that is right.
        trials: All variants, in the order in which they were tried.
        seconds: What the tuning took.
    """

    variant: str
    trials: tuple[Trial, ...]
    seconds: float = 0.0

    def to_json(self) -> str:
        """Return what `from_json` reads."""
        return json.dumps({"format": FORMAT, **asdict(self)})

    @staticmethod
    def from_json(text: str) -> Tuned:
        """Read what was kept of a tuning.

        Example:
            >>> tuned = Tuned("tiled", (Trial("tiled", 1.5), Trial("fused", problem="wrong")))
            >>> Tuned.from_json(tuned.to_json()) == tuned
            True
        """
        data = json.loads(text)
        del data["format"]
        return Decoder().decode(Tuned, data, "tuning")


def tune(
    module: HasExported,
    *,
    target: str = "cpu",
    inputs: Mapping[str, Call] | None = None,
    seconds: float = 1.0,
    parameters: ParameterSource | Mapping[str, ParameterSource] | None = None,
    device: str | Sequence[str] | None = None,
    cache_dir: StrPath | Configured | None = CONFIGURED,
    **options: Any,
) -> Tuned:
    """Find the fastest code for a module on this machine.

    Each variant that the target has is compiled, called, and compared with PyTorch on the same
    inputs; those that are right are timed in turns. With a compile cache, a tuning is remembered
    for the module, the options and the processor, and a later one returns at once.

    Args:
        module: What `export` returned, or the `ExportedModule` in it.
        target: What to compile for; it must be able to run here.
        inputs: The arguments of each entry point as `(args, kwargs)`, by its name. Others get
            random ones of their usual sizes, see `examples.example_call`.
        seconds: How long each variant is timed.
        parameters: External parameters, as for `runtime.load`; by default, the tensors that the
            module was exported with.
        device: What to run on, as for `runtime.load`.
        cache_dir: Folder of the compile cache; None: nothing is remembered.
        options: Options of the target; they hold for all variants.

    Returns:
        What was found; `out.compile(path, variant=tuned.variant)` makes the artifact.

    Raises:
        ExportError: The target has no variants, or an input or option does not fit.
        CompileError: No variant compiles and is right.
        DeviceError: This machine cannot run the program.

    Example:
        >>> from pelton import aot
        >>> out = aot.export(torch.nn.Linear(4, 2), args=(torch.ones(1, 4),))
        >>> tuned = tune(out, seconds=0.01)
        >>> out.compile("linear.vmfb", variant=tuned.variant)
    """
    request = compile_request(target, options, Storage(cache_dir))
    variants = (
        request.target.variants(request.options) if isinstance(request.target, Tunable) else {}
    )
    if not variants:
        raise ExportError(f"target {target!r} has nothing to tune; compile it without tuning")
    exported = module.exported.with_parameters(parameters)
    race = _Tuning(request, variants, exported, inputs or {}, seconds, device)
    if request.cache_dir is None:
        return race.run()
    identities = {name: request.target.identity(given) for name, given in variants.items()}
    known = {"tuning": FORMAT, "target": request.target.name, "variants": identities}
    key = compile_key(module_digest(exported.module_op, exported.resources), known)
    cache = CompileCache(request.cache_dir, config.cache_size_bytes)

    def make(path: Path) -> CachedArtifact:
        path.write_text(race.run().to_json())
        return CachedArtifact(f"{target} (tuning)", tuple(signatures_of(exported.module_op)))

    with cache.private_file() as path:
        cache.build(key, path, make, private=True)
        return Tuned.from_json(path.read_text())


@dataclass
class _Candidate:
    """A variant that is right, loaded."""

    variant: str
    executable: Executable
    milliseconds: dict[str, list[float]]

    def total(self) -> float:
        return sum(statistics.median(times) for times in self.milliseconds.values())


@dataclass
class _Tuning:
    """All that one tuning needs; see `tune`."""

    request: CompileRequest
    variants: Mapping[str, Any]
    module: ExportedModule
    inputs: Mapping[str, Call]
    seconds: float
    device: str | Sequence[str] | None

    def run(self) -> Tuned:
        """Try all variants and return which was the fastest."""
        start = time.perf_counter()
        signatures = self.module.signatures
        unknown = [name for name in self.inputs if name not in signatures]
        if unknown:
            known = ", ".join(signatures)
            raise ExportError(f"no entry point {', '.join(unknown)} to tune; there are: {known}")
        calls = {
            name: self.inputs.get(name) or example_call(signature)
            for name, signature in signatures.items()
        }
        with stage("computing what is right"):
            expected = self._expected(calls)
        problems: dict[str, str] = {}
        candidates = []
        for number, variant in enumerate(self.variants, 1):
            with stage(f"tuning {number} of {len(self.variants)}: {variant}"):
                try:
                    candidates.append(self._candidate(variant, calls, expected))
                except (PeltonError, AssertionError) as error:
                    if isinstance(error, DeviceError):
                        raise
                    problems[variant] = " ".join(str(error).split())[:300]
        if not candidates:
            said = "; ".join(f"{name}: {text}" for name, text in problems.items())
            raise CompileError(f"no variant compiles and is right: {said}")
        with stage("tuning: taking turns"):
            _interleave(candidates, calls, self.seconds)
        times = {candidate.variant: candidate.total() for candidate in candidates}
        trials = tuple(
            Trial(name, times.get(name), problems.get(name, "")) for name in self.variants
        )
        best = min(candidates, key=_Candidate.total).variant
        return Tuned(best, trials, time.perf_counter() - start)

    def _expected(self, calls: Mapping[str, Call]) -> dict[str, Any]:
        """Return what PyTorch computes from the module; the state is as at first for each."""
        functions = to_torch(self.module)
        expected = {}
        for name, (args, kwargs) in calls.items():
            functions.state.reset()
            expected[name] = functions.functions[name](*args, **kwargs)
        return expected

    def _candidate(
        self, variant: str, calls: Mapping[str, Call], expected: Mapping[str, Any]
    ) -> _Candidate:
        """Compile, load and check a variant.

        Raises:
            PeltonError: It does not compile or run.
            AssertionError: Its results are wrong.
        """
        request = CompileRequest(
            self.request.name, self.request.target, self.variants[variant], self.request.cache_dir
        )
        with request.private_file() as path:
            request.build(self.module, path, private=True)
            executable = load(path, device=self.device, parameters=self.module.parameters)
        for name, (args, kwargs) in calls.items():
            executable.reset_state()
            _check(expected[name], executable.functions[name](*args, **kwargs))
        return _Candidate(variant, executable, {name: [] for name in calls})


def _interleave(
    candidates: Sequence[_Candidate], calls: Mapping[str, Call], seconds: float
) -> None:
    turns = max(3, round(seconds / _TURN_SECONDS / len(calls)))
    for turn in range(turns):
        first = turn % len(candidates)
        for candidate in [*candidates[first:], *candidates[:first]]:
            for name, (args, kwargs) in calls.items():
                function = candidate.executable.functions[name]
                _time(lambda: function(*args, **kwargs), candidate.milliseconds[name])  # noqa: B023


def _time(call: Callable[[], Any], milliseconds: list[float]) -> None:
    """Add the times of calls within one turn, after one that is not counted."""
    call()
    end = time.perf_counter() + _TURN_SECONDS
    start = time.perf_counter()
    while True:
        call()
        now = time.perf_counter()
        milliseconds.append((now - start) * 1e3)
        start = now
        if now > end:
            return


def _check(expected: Any, given: Any) -> None:
    """Compare results with what PyTorch gave.

    Raises:
        AssertionError: They differ by more than rounding.
    """
    pairs = zip(pytrees.tree_leaves(expected), pytrees.tree_leaves(given), strict=True)
    for wanted, found in pairs:
        if not isinstance(wanted, torch.Tensor):
            assert wanted == found, f"gave {found!r} where PyTorch gives {wanted!r}"
            continue
        exact = not (wanted.dtype.is_floating_point or wanted.dtype.is_complex)
        tolerance = 0.0 if exact else _TOLERANCES.get(wanted.dtype, _TOLERANCE)
        scale = 1.0 if exact or not wanted.numel() else max(1.0, _largest(wanted))
        found = torch.as_tensor(found).to(wanted.device)
        torch.testing.assert_close(
            found, wanted, rtol=tolerance, atol=tolerance * scale, equal_nan=True
        )


def _largest(tensor: torch.Tensor) -> float:
    finite = tensor.abs().double().nan_to_num(0.0, 0.0, 0.0)
    return float(finite.max())
