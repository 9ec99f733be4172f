"""Pickling of objects that are defined in a build file of `iree.build`."""

from __future__ import annotations

import contextlib
import inspect
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from iree.build.main import load_build_module

_MODULE = "__iree_build__"
"""What a build file that was given as a path calls itself, without being found under that name."""

_PICKLING = threading.Lock()


class Origin:
    """A build file that was loaded by its path, and the names in it.

    Args:
        names: The global names of the file.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self.path = Path(names["__file__"]).absolute()
        self._names = names

    @staticmethod
    def of(generator: Callable[..., Any]) -> Origin | None:
        """Return the build file that a function or an object's class is defined in.

        None: it is defined in a module.
        """
        function = generator if inspect.isfunction(generator) else type(generator).__call__
        names = getattr(function, "__globals__", {})
        return Origin(names) if names.get("__name__") == _MODULE else None

    @contextlib.contextmanager
    def findable(self) -> Iterator[None]:
        """Let pickle find the names of the file by its module's name, while the block runs."""
        module = types.ModuleType(_MODULE)
        module.__dict__.update(self._names)
        with _PICKLING:
            before = sys.modules.get(_MODULE)
            sys.modules[_MODULE] = module
            try:
                yield
            finally:
                del sys.modules[_MODULE]
                if before is not None:
                    sys.modules[_MODULE] = before


def dumps(origin: Origin | None, value: Any) -> bytes:
    """Pickle a value that may name what is defined in a build file.

    Raises:
        Exception: What pickle raises, or what the value does when it is pickled.
    """
    with origin.findable() if origin is not None else contextlib.nullcontext():
        return pickle.dumps(value)


def call_pickled(build_file: Path | None, pickled: bytes) -> None:
    """Call what `dumps` pickled, in a child process, where its build file is not loaded yet."""
    if build_file is not None:
        sys.modules[_MODULE] = load_build_module(build_file)
    pickle.loads(pickled)()
