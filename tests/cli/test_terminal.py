"""Terminal output beside results: stages, errors and warnings, on stderr and in one line."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from pelton.cli.terminal import (
    Stages,
    is_internal,
    report,
    results_console,
    say,
    warnings_in_one_line,
)
from pelton.runtime.errors import CompileError, SignatureError

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the consoles be those of a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")


# Stages


@pytest.mark.usefixtures("terminal")
def test_a_stage_is_shown_with_its_end(capsys: Capture) -> None:
    with Stages().show("reading [m]"):
        pass
    out, err = capsys.readouterr()
    assert out == ""
    assert "reading [m]" in err
    assert "✓" in err
    assert "✗" not in err
    assert "0.0 s" in err


@pytest.mark.usefixtures("terminal")
def test_a_stage_that_fails_ends_with_a_cross_and_the_next_is_shown(capsys: Capture) -> None:
    stages = Stages()

    def fails() -> None:
        with stages.show("first"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fails()
    assert "✗" in capsys.readouterr().err
    with stages.show("second"):
        pass
    assert "second" in capsys.readouterr().err


@pytest.mark.usefixtures("terminal")
def test_only_the_outer_stage_is_shown_with_its_progress(capsys: Capture) -> None:
    stages = Stages()
    stages.advance("nothing is shown", 1, 2)
    with stages.show("outer"):
        with stages.show("inner"):
            stages.advance("step [red]", 1, 3)
            assert stages._shown is not None
            progress, task, _ = stages._shown
            assert progress.tasks[task].description == "outer: step \\[red] 33 %"
        stages.advance("none", 0, 0)
        assert progress.tasks[task].description == "outer: none 0 %"
    assert "inner" not in capsys.readouterr().err


def test_stages_and_words_are_silent_in_a_file(capsys: Capture) -> None:
    with Stages().show("outer"):
        say("done")
    assert capsys.readouterr() == ("", "")


@pytest.mark.usefixtures("terminal")
def test_words_on_a_terminal_are_no_markup_and_stay_in_one_line(capsys: Capture) -> None:
    say("[bold]m.vmfb: " + "long " * 40 + "end")
    err = capsys.readouterr().err
    assert err.startswith("[bold]m.vmfb: ")
    assert err.count("\n") == 1


# Errors


def told(capsys: Capture, error: Exception, *, verbose: bool = False) -> str:
    report(error, verbose=verbose)
    out, err = capsys.readouterr()
    assert out == ""
    return err


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (SignatureError("two\n  lines"), "two lines"),
        (OSError(28, "No space left"), "[Errno 28] No space left"),
        (ValueError("bad"), "ValueError: bad (--verbose shows where)"),
        (RuntimeError(), "RuntimeError: (--verbose shows where)"),
    ],
    ids=["pelton", "system", "value", "empty"],
)
def test_an_error_is_one_line(capsys: Capture, error: Exception, line: str) -> None:
    assert " ".join(told(capsys, error).split()) == f"pelton: error: {line}"


def test_a_verbose_error_has_its_traceback_and_the_compilers_words(capsys: Capture) -> None:
    try:
        raise CompileError("failed", diagnostics="m.mlir:1: no such op")
    except CompileError as error:
        lines = told(capsys, error, verbose=True).splitlines()
    assert lines[0].startswith("Traceback")
    assert "m.mlir:1: no such op" in lines
    assert lines[-1] == "pelton: error: failed"


# Warnings


@pytest.mark.parametrize(
    ("category", "filename", "internal"),
    [
        (UserWarning, "/home/me/net.py", False),
        (UserWarning, "/v/lib/site-packages/torch/export/x.py", True),
        (UserWarning, "/v/lib/site-packages/torchvision/x.py", False),
        (DeprecationWarning, "/home/me/net.py", True),
        (FutureWarning, "/home/me/net.py", True),
    ],
)
def test_warnings_of_torchs_internals_are_known(
    category: Any, filename: str, internal: bool
) -> None:
    assert is_internal(category, filename) is internal


@pytest.mark.parametrize("verbose", [False, True])
def test_warnings_are_lines_of_ours_while_the_block_runs(capsys: Capture, verbose: bool) -> None:
    before = warnings.showwarning
    with warnings_in_one_line(verbose):
        warnings.warn("two\n  lines", UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
    assert warnings.showwarning is before
    expected = "pelton: warning: two lines\n" + "pelton: warning: old\n" * verbose
    assert capsys.readouterr() == ("", expected)


def test_results_in_a_file_are_not_wrapped(capsys: Capture) -> None:
    results_console().print("word " * 100)
    assert capsys.readouterr().out.count("\n") == 1
