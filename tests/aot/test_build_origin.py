"""Pickling of what a build file defines: found by the file's own name, here and in a child."""

from __future__ import annotations

import pickle
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from iree.build.main import load_build_module

from pelton.aot import build_origin
from pelton.aot.build_origin import Origin, dumps

FILE = """
import pathlib

class Writer:
    def __init__(self, path, text):
        self.path, self.text = path, text

    def __call__(self):
        pathlib.Path(self.path).write_text(self.text + suffix())

def suffix():
    return "!"

def action():
    return Writer
"""


@pytest.fixture
def build_file(tmp_path: Path) -> Path:
    path = tmp_path / "build_me.py"
    path.write_text(FILE)
    return path


@pytest.fixture
def names(build_file: Path) -> dict[str, Any]:
    return vars(load_build_module(build_file))


def test_the_file_of_a_function_or_of_an_objects_class_is_found(
    names: dict[str, Any], build_file: Path
) -> None:
    for generator in (names["action"], names["Writer"]("a", "b")):
        origin = Origin.of(generator)
        assert origin is not None
        assert origin.path == build_file.absolute()


class Callable:
    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    "generator", [pickle.dumps, test_the_file_of_a_function_or_of_an_objects_class_is_found,
                  Callable(), len, print],
    ids=["library", "module", "object", "builtin", "print"],
)  # fmt: skip
def test_what_a_module_defines_has_no_origin(generator: Any) -> None:
    assert Origin.of(generator) is None


def test_what_the_file_defines_can_be_pickled_and_is_not_left_behind(
    names: dict[str, Any],
) -> None:
    value = names["Writer"]("a", "b")
    with pytest.raises(pickle.PicklingError):
        dumps(None, value)
    origin = Origin.of(value)
    pickled = dumps(origin, [value, names["suffix"]])
    assert b"__iree_build__" in pickled
    assert "__iree_build__" not in sys.modules


def test_a_module_that_has_the_name_already_is_put_back_even_after_an_error(
    names: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = types.ModuleType("__iree_build__")
    monkeypatch.setitem(sys.modules, "__iree_build__", other)
    origin = Origin.of(names["action"])
    assert origin is not None
    with pytest.raises((pickle.PicklingError, AttributeError, TypeError)):
        dumps(origin, lambda: None)
    assert sys.modules["__iree_build__"] is other
    with origin.findable():
        assert sys.modules["__iree_build__"].suffix() == "!"
    assert sys.modules["__iree_build__"] is other


def test_a_process_without_the_file_loads_it_and_calls_what_was_pickled(
    names: dict[str, Any], build_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = names["Writer"](str(tmp_path / "out.txt"), "done")
    pickled = dumps(Origin.of(value), value)
    monkeypatch.setitem(sys.modules, "__iree_build__", types.ModuleType("other"))
    build_origin.call_pickled(build_file, pickled)
    assert (tmp_path / "out.txt").read_text() == "done!"


def test_what_modules_define_needs_no_file(tmp_path: Path) -> None:
    made = tmp_path / "made"
    build_origin.call_pickled(None, dumps(None, made.mkdir))
    assert made.is_dir()
