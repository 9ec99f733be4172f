"""Gives the tests of this folder the harness as a fixture."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def check() -> Callable[..., None]:
    spec = importlib.util.spec_from_file_location(
        "decomposition_harness", Path(__file__).with_name("harness.py")
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.check
