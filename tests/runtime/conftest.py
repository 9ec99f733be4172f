"""Compiled programs for the tests of the runtime, each compiled once in a session."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .programs import PROGRAMS

Compiled = Callable[[str], Path]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """Return the `.vmfb` of one of `PROGRAMS`; its parameters lie beside it as `.irpa`."""
    folder = tmp_path_factory.mktemp("programs")

    def path_of(name: str) -> Path:
        path = folder / f"{name}.vmfb"
        if not path.exists():
            output = PROGRAMS[name](folder)
            if output.parameters:
                output.save_parameters(path.with_suffix(".irpa"))
            output.compile(path)
        return path

    return path_of
