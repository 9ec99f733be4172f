"""Settings of the process: their checks, and their values within a block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pelton import aot
from pelton.aot.spec.config import CONFIGURED, Config


def test_settings_have_defaults_and_take_paths() -> None:
    settings = Config()
    assert (settings.cache_dir, settings.cache_size_bytes) == (None, 10 << 30)
    settings.cache_dir = Path("a")
    settings.timing_cache_file_path = "b"
    settings.cache_size_bytes = 0
    settings.cache_dir = None
    assert settings == Config(None, 0, "b")


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("cache_size_bytes", -1, "must be a number of bytes, got -1"),
        ("cache_size_bytes", True, "must be a number of bytes, got True"),
        ("cache_size_bytes", 1.0, "must be a number of bytes"),
        ("cache_size_bytes", None, "must be a number of bytes"),
        ("cache_dir", 3, r"aot\.config\.cache_dir must be a path or None, got 3"),
        ("timing_cache_file_path", b"x", "must be a path or None"),
        ("cache", "x", r"aot\.config has no setting 'cache'; known: cache_dir, cache_size_bytes"),
    ],
)
def test_wrong_settings_are_refused_and_change_nothing(name: str, value: Any, message: str) -> None:
    settings = Config()
    with pytest.raises(aot.ExportError, match=message):
        setattr(settings, name, value)
    assert settings == Config()
    with pytest.raises(aot.ExportError, match=message), settings.using(**{name: value}):
        pass
    assert settings == Config()


def test_settings_of_a_block_end_with_it() -> None:
    settings = Config(cache_dir="a")
    with pytest.raises(KeyError), settings.using(cache_dir="b", cache_size_bytes=1) as inner:
        assert inner is settings and settings.cache_dir == "b"
        settings.timing_cache_file_path = "c"
        raise KeyError
    assert settings == Config(cache_dir="a")


def test_a_wrong_setting_of_a_block_takes_back_the_others() -> None:
    settings = Config()
    with pytest.raises(aot.ExportError), settings.using(cache_dir="b", cache_size_bytes=-1):
        pass
    assert settings == Config()


def test_the_default_of_arguments_prints_its_name() -> None:
    assert repr(CONFIGURED) == "CONFIGURED"
