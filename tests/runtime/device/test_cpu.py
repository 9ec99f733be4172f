"""CPU features and identity."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pelton.runtime.device import cpu


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    cpu.cpu_features.cache_clear()
    yield
    cpu.cpu_features.cache_clear()


def pretend(monkeypatch: pytest.MonkeyPatch, **features: bool) -> None:
    listing = "".join(f"{name} {int(has)}\n" for name, has in features.items())
    done = subprocess.CompletedProcess([], 0, stdout=f"a heading of words\n{listing}")
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: done)


def test_features_of_this_machine_are_found() -> None:
    assert len(cpu.cpu_features()) > 5


def test_detected_features_are_read_from_the_listing(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, avx2=True, avx512f=False)
    assert cpu.cpu_features() == {"avx2": True, "avx512f": False}


def test_features_are_unknown_where_the_detection_tool_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("iree.runtime.__file__", str(tmp_path / "runtime" / "__init__.py"))
    assert cpu.cpu_features() == {}
    assert cpu.missing_features(["avx2"]) == []


def test_only_features_known_to_be_absent_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, avx2=True, avx512f=False)
    assert cpu.missing_features(["avx2", "avx512f", "not-detectable"]) == ["avx512f"]


def test_identity_of_the_processor_states_its_architecture() -> None:
    assert cpu.cpu_identity()["machine"]
