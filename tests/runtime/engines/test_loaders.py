"""Loaders: each kind of file has an engine, which is imported on first use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pelton.runtime.engines import iree, loaders, trtm_loader
from pelton.runtime.files import FileKind
from tests.runtime.children import run_child


def test_kinds_of_compiled_artifacts() -> None:
    assert set(loaders.LOADERS) == {FileKind.VMFB, FileKind.TRTM}


@pytest.mark.parametrize(
    ("kind", "module", "name"),
    [(FileKind.VMFB, iree, "load_vmfb"), (FileKind.TRTM, trtm_loader, "load_trtm")],
)
def test_loader_of_a_kind_gets_all_arguments(
    kind: FileKind, module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, lambda *args: args)
    given = (Path("m"), "cpu", {"a": 1}, True)
    assert loaders.LOADERS[kind](*given) == given


def test_engines_are_imported_on_first_use() -> None:
    run_child(
        """
        import sys
        import pelton.runtime, pelton.runtime.engines.loaders
        engines = ("iree", "trtm_loader", "tensorrt", "onnxruntime", "iree_fallback")
        loaded = [name for name in engines if f"pelton.runtime.engines.{name}" in sys.modules]
        assert not loaded, loaded
        assert "iree.runtime" not in sys.modules
        """
    )
