"""From a module to an artifact: the target by its name, its options, and the cache."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pelton.runtime.archive import load_parameters
from pelton.runtime.files import StrPath

from ..ir.digest import compile_key, module_digest, parameters_digest
from ..ir.exported import ExportedModule
from ..ir.module import parameters_of, signatures_of
from ..spec.config import CONFIGURED, Configured, config
from .base import Artifact, Target
from .cache import CachedArtifact, CompileCache
from .table import find_target


@dataclass(frozen=True)
class Storage:
    """Where compiles keep what they can use again.

    Attributes:
        cache_dir: Folder of the compile cache; None: no cache.
        timing_cache_file_path: File of kernel timings, for targets that measure kernels.
    """

    cache_dir: StrPath | Configured | None = CONFIGURED
    timing_cache_file_path: StrPath | None = None


@dataclass(frozen=True)
class CompileRequest:
    """A target with its checked options: all that is needed to compile modules.

    Attributes:
        name: The target as the user named it.
        target: The target.
        options: Its options.
        cache_dir: Folder of the compile cache; None: no cache.
        notes: What the user should know before anything is compiled.
    """

    name: str
    target: Target
    options: Any
    cache_dir: StrPath | None
    notes: tuple[str, ...] = ()

    def build(
        self,
        exported: ExportedModule,
        path: Path,
        *,
        replaces: Path | None = None,
        private: bool = False,
    ) -> Artifact:
        """Compile a module to the file `path`, or take the artifact from the cache.

        Args:
            exported: The module and what belongs to it.
            path: Where to write; the caller makes this atomic.
            replaces: Where the caller will move the file to, if it is not `path`.
            private: Whether the file is for this process alone and never written to.

        Raises:
            CompileError: The compiler failed.
            ArtifactError: The cache's folder cannot be used.
        """
        if self.cache_dir is None:
            artifact = self.target.build(exported, path, self.options)
            return replace(artifact, notes=(*self.notes, *artifact.notes))

        def make(target: Path) -> CachedArtifact:
            artifact = self.target.build(exported, target, self.options)
            return CachedArtifact(
                self.name, tuple(signatures_of(exported.module_op)), artifact.notes
            )

        identity = {"target": self.target.name, **self.target.identity(self.options)}
        if self.target.holds_parameters:
            identity["parameters"] = _digest_of_parameters(exported)
        key = compile_key(module_digest(exported.module_op, exported.resources), identity)
        cache = CompileCache(self.cache_dir, config.cache_size_bytes)
        made = cache.build(key, path, make, replaces=replaces, private=private)
        return Artifact(path, (*self.notes, *made.notes))

    @contextlib.contextmanager
    def private_file(self) -> Iterator[Path]:
        """Yield a path for `build(private=True)`; what is there is removed in the end.

        With a cache it is on the same file system, so that a hit costs no copy.
        """
        if self.cache_dir is None:
            with tempfile.TemporaryDirectory(prefix="pelton-") as folder:
                yield Path(folder, "artifact")
            return
        with CompileCache(self.cache_dir, config.cache_size_bytes).private_file() as path:
            yield path


def _digest_of_parameters(exported: ExportedModule) -> str:
    table = parameters_of(exported.module_op)
    return parameters_digest(load_parameters(exported.parameters, table), table)


def compile_request(target: str, options: Mapping[str, Any], storage: Storage) -> CompileRequest:
    """Return how to compile for a target.

    Args:
        target: As the user named it, such as `cuda:sm_80`.
        options: Options of the target by name.
        storage: The cache and the timings.

    Raises:
        ExportError: Unknown target or option.
    """
    chosen, implied = find_target(target)
    given = {**implied, **options}
    notes = []
    if chosen.timing_cache:
        timings = storage.timing_cache_file_path or config.timing_cache_file_path
        given.setdefault("timing_cache", timings)
    elif storage.timing_cache_file_path is not None:
        path = os.fspath(storage.timing_cache_file_path)
        notes.append(
            f"target {target!r} keeps no timings; timing_cache_file_path={path!r} is unused"
        )
    folder = config.cache_dir if storage.cache_dir is CONFIGURED else storage.cache_dir
    assert not isinstance(folder, Configured)
    return CompileRequest(target, chosen, chosen.options(given), folder, tuple(notes))
