"""Compile errors of IREE: the operator, the user's line, and the reproducer on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from pelton.aot.targets.iree.errors import compile_error


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "given.mlir"
    path.write_text("module {}")
    return path


def test_the_first_error_is_the_message(source: Path) -> None:
    text = '"/m/model.py":7:0: error: no such thing.\n"/m/model.py":9:0: error: another'
    error = compile_error(text, source, [], "target 'cpu'")
    assert str(error).startswith("target 'cpu' failed to compile: no such thing. Reproducer:")
    assert str(error.location) == "/m/model.py:7"
    assert error.diagnostics == text


def test_operators_are_listed_once_with_their_lines(source: Path) -> None:
    text = (
        "\"/m/model.py\":7:0: error: failed to legalize operation 'torch.aten.fft' that was\n"
        "\"/m/model.py\":8:0: error: 'torch.aten.sort' op is wrong\n"
        "\"/m/model.py\":9:0: error: 'torch.aten.fft' op is wrong\n"
        "note: see 'torch.aten.add' op\n"
    )
    error = compile_error(text, source, [], "x")
    assert error.operators == ("aten.fft", "aten.sort")
    assert "aten.fft (at /m/model.py:7); aten.sort (at /m/model.py:8)" in str(error)


def test_the_reproducer_repeats_the_compile(source: Path) -> None:
    error = compile_error("error: bad", source, ["--a=1", "--b=x y"], "x")
    assert error.reproducer is not None
    module = Path(error.reproducer)
    assert module.read_text() == "module {}"
    command = (module.parent / "command.txt").read_text()
    assert command == f"iree-compile {module} -o module.vmfb --a=1 '--b=x y'\n"
    assert (module.parent / "diagnostics.txt").read_text() == "error: bad\n"


def test_a_compiler_without_words_is_said_so(source: Path) -> None:
    error = compile_error("", source, [], "x")
    assert "the compiler gave no reason" in str(error)
    assert error.location is None
    assert error.operators == ()
