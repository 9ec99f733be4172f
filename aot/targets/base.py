"""The seam between the exported module and the compilers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Protocol, TypeVar

from iree.compiler.ir import Operation

from ..errors import ExportError


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

    def options(self, given: Mapping[str, Any]) -> Any:
        """Return the target's options, a frozen dataclass.

        Raises:
            ExportError: An option is unknown or has an impossible value.
        """

    def identity(self, options: Any) -> Mapping[str, Any]:
        """Return, as JSON, all that decides the artifact beside the module.

        That is every option that changes it, the versions of the compilers, and the machine where
        the artifact is made for the machine. Two compiles of equal modules and identities may
        stand for each other.

        Args:
            options: What `options` returned.
        """

    def build(self, module_op: Operation, path: Path, options: Any) -> Artifact:
        """Compile a module to the file `path`.

        Args:
            module_op: The module; it is not changed.
            path: Where to write; the caller makes this atomic.
            options: What `options` returned.

        Raises:
            CompileError: The compiler failed; it keeps the diagnostics and a reproducer.
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
