"""Generators run through the command line of `iree.build`, from modules and from build files."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from iree.build import iree_build_main
from iree.build.main import CliMain

from pelton import aot, runtime
from pelton.aot.spec.errors import ExportError

BUILD = """
import os, time
from pathlib import Path

import torch
from iree.build import *

from pelton.aot import ExportOutput, ParameterArchiveBuilder, export
from pelton.aot.build_actions import *


def scaled(factor, size=2) -> ExportOutput:
    return export(lambda x: x * factor, args=(torch.ones(size),))


class Pair:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self) -> tuple[ExportOutput, ParameterArchiveBuilder]:
        weights = ParameterArchiveBuilder()
        weights.add_tensor("w", torch.full((3,), self.factor))
        return scaled(self.factor), weights


def meets(folder, own, other) -> ExportOutput:
    '''Ends only if the other one runs at the same time.'''
    Path(folder, own).touch()
    end = time.monotonic() + 60
    while not Path(folder, other).exists():
        assert time.monotonic() < end, "nobody came"
        time.sleep(0.01)
    return scaled(1.0)


def gives_a_number() -> ExportOutput:
    return 3


def gives_one_of_two() -> tuple[ExportOutput, ExportOutput]:
    return (scaled(1.0),)


def gives_two_kinds() -> tuple[ExportOutput, ParameterArchiveBuilder]:
    return scaled(1.0), scaled(1.0)


class TwoPart(Exception):
    def __init__(self, one, two):
        super().__init__(one)


def raises() -> ExportOutput:
    raise TwoPart("no weights", 2)


def crashes() -> ExportOutput:
    os._exit(3)


def says_nothing():
    return scaled(1.0)


def says_another_type() -> list[ExportOutput]:
    return [scaled(1.0)]


@entrypoint
def build(
    which=cl_arg("which", default="scaled"),
    folder=cl_arg("folder", default=""),
    inside=cl_arg("inside", type=int, default=0),
):
    out = {"out_of_process": not inside}
    if which == "meets":
        return [
            *turbine_generate(meets, folder, "a", "b", name="a"),
            *turbine_generate(meets, folder, own="b", other="a", name="b"),
        ]
    if which == "scaled":
        return turbine_generate(scaled, 3.0, size=4, name="scaled", **out)
    if which == "pair":
        return turbine_generate(Pair(2.0), name="pair", **out)
    if which == "lambda":
        return turbine_generate(lambda: scaled(1.0), name="lambda", **out)
    if which == "inner":
        def inner() -> ExportOutput:
            return scaled(5.0)
        return turbine_generate(inner, name="inner", **out)
    if which == "argument":
        return turbine_generate(scaled, factor=lambda: 1, name="argument", **out)
    return turbine_generate(globals()[which], name=which, **out)
"""

AT_ONCE = "4"
"""Processes for generators, whatever machine runs the tests."""

INSIDE = ("--inside", "1")
"""In this process, which saves the seconds that another one takes to start."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("builds")
    (folder / "pelton_test_build.py").write_text(BUILD)
    return folder


@pytest.fixture(scope="module")
def module(folder: Path) -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)  # children inherit it
        yield importlib.import_module("pelton_test_build")
        del sys.modules["pelton_test_build"]


def build(module: ModuleType | None, *arguments: object) -> tuple[list[Path], str]:
    """Run the command line; returns the files that it lists, and what it says of failures."""
    stdout, stderr = io.StringIO(), io.StringIO()
    given = ["--generate-jobs", AT_ONCE, *map(str, arguments)]
    try:
        if module is None:
            CliMain(args=[given.pop(), *given], stdout=stdout, stderr=stderr).run()
        else:
            iree_build_main(module, args=given, stdout=stdout, stderr=stderr)
    except SystemExit as error:
        assert error.code == 1
    return [Path(line) for line in stdout.getvalue().splitlines()], stderr.getvalue()


def test_a_function_becomes_a_module_that_runs(module: ModuleType, tmp_path: Path) -> None:
    (path,), _ = build(module, "--output-dir", tmp_path, *INSIDE)
    assert path == tmp_path / "genfiles" / "build" / "scaled.mlir"
    aot.export(path).compile(tmp_path / "m.vmfb")
    x = torch.randn(4)
    torch.testing.assert_close(runtime.load(tmp_path / "m.vmfb")(x), 3 * x)


def test_several_results_are_numbered_files(module: ModuleType, tmp_path: Path) -> None:
    paths, _ = build(module, "--output-dir", tmp_path, "--which", "pair", *INSIDE)
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        "genfiles/build/pair_0.mlir",
        "params/build/pair_1.irpa",
    ]
    assert "main" in aot.export(paths[0]).signatures
    assert aot.ParameterArchive(paths[1])["w"].as_tensor().tolist() == [2.0, 2.0, 2.0]


def test_the_generators_of_a_build_file_are_found_by_other_processes(
    folder: Path, tmp_path: Path
) -> None:
    file = folder / "pelton_test_build.py"
    paths, said = build(None, "--output-dir", tmp_path, "--which", "pair", file)
    assert [path.name for path in paths] == ["pair_0.mlir", "pair_1.irpa"], said
    assert "__iree_build__" not in sys.modules


def test_generators_run_at_the_same_time(module: ModuleType, tmp_path: Path) -> None:
    given = ["--which", "meets", "--folder", tmp_path]
    paths, said = build(module, "--output-dir", tmp_path, *given)
    assert [path.name for path in paths] == ["a.mlir", "b.mlir"], said


def test_what_is_called_inside_need_not_travel(module: ModuleType, tmp_path: Path) -> None:
    (path,), _ = build(module, "--output-dir", tmp_path, "--which", "inner", *INSIDE)
    assert path.exists()


@pytest.mark.parametrize(
    ("which", "place", "message"),
    [
        (
            "gives_a_number",
            INSIDE,
            "gives_a_number() says that it returns ExportOutput, but it returned int (at ",
        ),
        (
            "gives_one_of_two",
            INSIDE,
            "says that it returns (ExportOutput, ExportOutput), but it returned ExportOutput",
        ),
        (
            "gives_two_kinds",
            INSIDE,
            "(ExportOutput, ParameterArchiveBuilder), but it returned (ExportOutput, ExportOutput)",
        ),
        ("raises", (), "generator raises() failed: TwoPart: no weights (at "),
        ("crashes", (), "Exporting crashes: a process of the pool of generators ended abruptly"),
    ],
)
def test_a_failure_is_told_and_leaves_no_file(
    module: ModuleType, tmp_path: Path, which: str, place: tuple[str, ...], message: str
) -> None:
    paths, said = build(module, "--output-dir", tmp_path, "--which", which, *place)
    assert message in said
    assert paths == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (
            "says_nothing",
            r"says_nothing\(\) must say what it returns, .* says nothing \(at .*py:\d+",
        ),
        ("says_another_type", r"must say what it returns, .* says list\[.*ExportOutput"),
        ("lambda", r"must say what it returns"),
        (
            "inner",
            r"generator build.<locals>.inner\(\) cannot travel .* or pass out_of_process=False",
        ),
        ("argument", r"argument 'factor' of generator scaled\(\) cannot travel .* pass numbers"),
    ],
)
def test_a_generator_that_cannot_be_used_is_refused_before_anything_runs(
    module: ModuleType, tmp_path: Path, which: str, message: str
) -> None:
    with pytest.raises(ExportError, match=message):
        build(module, "--output-dir", tmp_path, "--which", which)
    assert list(tmp_path.iterdir()) == []


def test_an_impossible_number_of_processes_is_refused(module: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="--generate-jobs must be 1 or more, got 0"):
        iree_build_main(module, args=["--generate-jobs", "0", "--output-dir", str(tmp_path)])


def test_the_import_of_everything_brings_one_name() -> None:
    names: dict[str, object] = {}
    exec("from pelton.aot.build_actions import *", names)
    assert {name for name in names if not name.startswith("__")} == {"turbine_generate"}
