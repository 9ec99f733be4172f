"""Settings of the process: folders of the compile cache and of TensorRT's timings."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pelton.runtime.files import StrPath

from .errors import ExportError

USER_CACHE_DIR = Path("~/.cache/pelton")
"""The folder that `pelton cache` looks into where none is set."""


class Configured(enum.Enum):
    """The default of arguments that a setting of `config` stands in for."""

    CONFIGURED = "as pelton.aot.config says"

    def __repr__(self) -> str:
        return self.name


CONFIGURED = Configured.CONFIGURED


@dataclass
class Config:
    """The settings; `aot.config` is the one object of this kind.

    A setting is the default of the argument of the same name, which goes before it.

    Attributes:
        cache_dir: Folder of the compile cache, made when it is first used; None: no cache.
        cache_size_bytes: When the cache is larger, the entries that were not used for the longest
            time are removed.
        timing_cache_file_path: File in which TensorRT keeps the timings of kernels between
            builds; other targets have no use for it.

    Raises:
        ExportError: A setting is unknown, or its value is of a wrong kind.

    Example:
        >>> settings = Config()
        >>> settings.cache_dir = "cache"
        >>> settings.cache_dirs = "cache"
        Traceback (most recent call last):
        ...
        pelton.runtime.errors.ExportError: aot.config has no setting 'cache_dirs'; known: \
cache_dir, cache_size_bytes, timing_cache_file_path
    """

    cache_dir: StrPath | None = None
    cache_size_bytes: int = 10 << 30
    timing_cache_file_path: StrPath | None = None

    def __setattr__(self, name: str, value: Any) -> None:
        known = [field.name for field in dataclasses.fields(self)]
        if name not in known:
            raise ExportError(f"aot.config has no setting {name!r}; known: {', '.join(known)}")
        if name == "cache_size_bytes":
            if type(value) is not int or value < 0:
                raise ExportError(f"aot.config.{name} must be a number of bytes, got {value!r}")
        elif value is not None and not isinstance(value, (str, os.PathLike)):
            raise ExportError(f"aot.config.{name} must be a path or None, got {value!r}")
        object.__setattr__(self, name, value)

    @contextlib.contextmanager
    def using(self, **settings: Any) -> Iterator[Config]:
        """Change settings within a `with` block, for all threads.

        Raises:
            ExportError: A setting is unknown, or its value is of a wrong kind.

        Example:
            >>> settings = Config()
            >>> with settings.using(cache_size_bytes=1000):
            ...     settings.cache_size_bytes
            1000
            >>> settings.cache_size_bytes
            10737418240
        """
        before = dataclasses.asdict(self)
        try:
            for name, value in settings.items():
                setattr(self, name, value)
            yield self
        finally:
            for name, value in before.items():
                setattr(self, name, value)


config = Config()
"""The settings of this process."""
