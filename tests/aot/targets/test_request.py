"""Compile requests: options, notes, and the cache; a fake target stands for the compiler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pelton.aot.ir.exported import ExportedModule
from pelton.aot.ir.module import new_module
from pelton.aot.spec.errors import ExportError
from pelton.aot.targets.base import Artifact
from pelton.aot.targets.request import CompileRequest, Storage, compile_request


@dataclass
class Fake:
    """A target that writes what it was asked for, and counts its builds."""

    builds: int = 0
    name = "fake"
    timing_cache = False
    holds_parameters = False

    def options(self, given: Mapping[str, Any]) -> Any:
        return dict(given)

    def checking_device(self, options: Any) -> str | None:
        return None

    def identity(self, options: Any) -> Mapping[str, Any]:
        return dict(options)

    def build(self, exported: ExportedModule, path: Path, options: Any) -> Artifact:
        self.builds += 1
        path.write_text(str(options))
        return Artifact(path, ("built",))


def request(target: Fake, cache: Path | None, **options: Any) -> CompileRequest:
    return CompileRequest("fake", target, options, cache, ("asked",))


def module(name: str = "m") -> ExportedModule:
    return ExportedModule(new_module(name))


def test_without_a_cache_every_build_compiles(tmp_path: Path) -> None:
    target = Fake()
    for _ in range(2):
        artifact = request(target, None).build(module(), tmp_path / "a")
    assert target.builds == 2
    assert artifact.notes == ("asked", "built")


def test_with_a_cache_equal_requests_compile_once(tmp_path: Path) -> None:
    target = Fake()
    cache = tmp_path / "cache"
    for name in ("a", "b"):
        artifact = request(target, cache, level=1).build(module(), tmp_path / name)
        assert artifact.notes == ("asked", "built")
        assert (tmp_path / name).read_text() == "{'level': 1}"
    assert target.builds == 1


def test_other_options_and_other_modules_are_compiled_anew(tmp_path: Path) -> None:
    target = Fake()
    cache = tmp_path / "cache"
    request(target, cache, level=1).build(module(), tmp_path / "a")
    request(target, cache, level=2).build(module(), tmp_path / "a")
    request(target, cache, level=1).build(module("other"), tmp_path / "a")
    assert target.builds == 3


@pytest.mark.parametrize("cached", [False, True])
def test_a_private_file_is_removed(tmp_path: Path, cached: bool) -> None:
    with request(Fake(), tmp_path / "cache" if cached else None).private_file() as path:
        path.write_text("x")
    assert not path.exists()


def test_an_unknown_target_or_option_is_refused() -> None:
    with pytest.raises(ExportError, match="unknown target 'nowhere'"):
        compile_request("nowhere", {}, Storage())
    with pytest.raises(ExportError, match="target 'cpu' has no option 'speed'; known:"):
        compile_request("cpu", {"speed": 3}, Storage())


def test_an_architecture_in_the_name_is_an_option() -> None:
    made = compile_request("cuda:sm_80", {}, Storage(None))
    assert made.options.arch == "sm_80"
    assert made.cache_dir is None


def test_a_timing_cache_that_nothing_uses_is_noted() -> None:
    made = compile_request("cpu", {}, Storage(None, "timings"))
    assert made.notes == (
        "target 'cpu' keeps no timings; timing_cache_file_path='timings' is unused",
    )
