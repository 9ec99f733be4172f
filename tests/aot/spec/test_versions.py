"""Versions that an artifact states."""

from __future__ import annotations

import importlib.metadata

import pytest
import torch

from pelton.aot.spec.versions import PACKAGES, versions


def test_installed_packages_have_their_versions() -> None:
    found = versions()
    assert set(found) <= set(PACKAGES)
    assert found["torch"] == importlib.metadata.version("torch")
    assert torch.__version__.startswith(found["torch"].partition("+")[0])


def test_absent_packages_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(package: str) -> str:
        if package == "torch":
            return "1.0"
        raise importlib.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert versions() == {"torch": "1.0"}
