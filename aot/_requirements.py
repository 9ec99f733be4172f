"""Required packages: imported first, so that a missing one is reported in one sentence."""

from __future__ import annotations

import importlib.util

from pelton.runtime.errors import MissingDependencyError

_PACKAGES = {"torch": "torch", "iree.compiler": "iree-base-compiler"}


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package that would hold the module
        return False


for _module, _package in _PACKAGES.items():
    if not _is_installed(_module):
        raise MissingDependencyError(
            f"pelton.aot needs {_module}, which is not installed: pip install {_package} "
            "(to load and call artifacts, pelton.runtime needs neither torch nor a compiler)"
        )
