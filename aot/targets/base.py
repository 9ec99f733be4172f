"""The target protocol: the seam between exported modules and compilers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from ..ir.exported import ExportedModule
from ..spec.errors import ExportError, SourceLocation


@dataclass(frozen=True)
class Artifact:
    """What a target made: a file, and what is to be said of it.

    Attributes:
        path: The finished file.
        notes: What the user should know, such as an option that had to be given up.
    """

    path: Path
    notes: tuple[str, ...] = ()


class Target(Protocol):
    """A compiler for exported modules."""

    @property
    def name(self) -> str:
        """The name that users give."""

    @property
    def timing_cache(self) -> bool:
        """Whether it measures kernels, so that its options have a `timing_cache_file_path`."""

    @property
    def holds_parameters(self) -> bool:
        """Whether the values of external parameters become part of its artifacts."""

    def options(self, given: Mapping[str, Any]) -> Any:
        """Return the target's options, a frozen dataclass.

        Raises:
            ExportError: An option is unknown or has an impossible value.
        """

    def checking_device(self, options: Any) -> str | None:
        """Return the device to check an artifact on; None: the one that `runtime.load` takes.

        Args:
            options: What `options` returned.
        """

    def identity(self, options: Any) -> Mapping[str, Any]:
        """Return, as JSON, all that decides the artifact beside the module.

        That is every option that changes it, the versions of the compilers, and the machine where
        the artifact is made for the machine. Two compiles of equal modules and identities may
        stand for each other.

        Args:
            options: What `options` returned.
        """

    def build(self, exported: ExportedModule, path: Path, options: Any) -> Artifact:
        """Compile a module to the file `path`.

        Args:
            exported: The module and what belongs to it.
            path: Where to write; the caller makes this atomic.
            options: What `options` returned.

        Raises:
            CompileError: The compiler failed; it keeps the diagnostics and a reproducer.
        """


@dataclass(frozen=True)
class Refusal:
    """An operator that a target cannot take.

    Attributes:
        operator: Its name: torch's where it is known, else the target's.
        reason: Why.
        location: The user's line.
    """

    operator: str
    reason: str
    location: SourceLocation | None = None

    def __str__(self) -> str:
        place = f" (at {self.location})" if self.location else ""
        return f"{self.operator}{place}: {self.reason}"


@dataclass(frozen=True)
class FunctionReport:
    """What a target would make of an entry point.

    Attributes:
        name: The entry point.
        operators: How often each operator occurs.
        refusals: What the target cannot take; empty: it takes all.
        layers: How many layers the target makes of it; None: not known.
        profiles: The sizes that it would be built for, as text.
        memory_bytes: Bytes by purpose, at the largest sizes: `weights`, `inputs and outputs`,
            `state`, `activations` (an upper bound: the most that is alive at once, unfused).
    """

    name: str
    operators: Mapping[str, int]
    refusals: tuple[Refusal, ...]
    layers: int | None = None
    profiles: tuple[str, ...] = ()
    memory_bytes: Mapping[str, int] = field(default_factory=dict)

    @property
    def supported(self) -> bool:
        """Whether the target takes it."""
        return not self.refusals


@runtime_checkable
class ReportingTarget(Protocol):
    """A target that checks a module before anything is built."""

    def report(self, exported: ExportedModule, options: Any) -> list[FunctionReport]:
        """Return a report for each entry point.

        Args:
            exported: The module and what belongs to it.
            options: What `options` returned.
        """


T = TypeVar("T")


def make_options(cls: type[T], given: Mapping[str, Any], target: str) -> T:
    """Return an options dataclass from keyword arguments.

    Raises:
        ExportError: An option is unknown; lists those that there are.
    """
    known = [field.name for field in fields(cls) if field.init]  # type: ignore[arg-type]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ExportError(
            f"target {target!r} has no option {', '.join(map(repr, unknown))}; "
            f"known: {', '.join(known)}"
        )
    return cls(**given)
