"""Versions of the packages that make an artifact."""

from __future__ import annotations

import importlib.metadata

PACKAGES = ("pelton", "torch", "iree-base-compiler")
"""The packages whose versions an artifact states."""


def versions() -> dict[str, str]:
    """Return the installed version of each package that produces an artifact, by name."""
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
