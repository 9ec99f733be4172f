"""Terminal output beside results: stages, warnings and errors, on stderr."""

from __future__ import annotations

import contextlib
import sys
import traceback
import warnings
from collections.abc import Iterator
from typing import TextIO

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import Progress, ProgressColumn, SpinnerColumn, Task, TaskID, TextColumn
from rich.text import Text

from pelton.runtime.errors import CompileError, PeltonError


class Stages:
    """Shows each stage of long work with the time it takes; silent where there is no terminal."""

    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._shown: tuple[Progress, TaskID, str] | None = None

    @contextlib.contextmanager
    def show(self, name: str) -> Iterator[None]:
        """Show one stage while the block runs; a stage within a stage is not shown."""
        if self._shown is not None or not self._console.is_terminal:
            yield
            return
        columns = (_Mark(), TextColumn("{task.description}"), _Seconds())
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task(escape(name), total=1)
            self._shown = progress, task, escape(name)
            try:
                yield
                progress.update(task, description=escape(name), completed=1)
            except BaseException:
                progress.update(task, failed=True)
                raise
            finally:
                self._shown = None

    def advance(self, what: str, done: int, total: int) -> None:
        """Show how far the stage is: `done` of `total` steps of what is being done.

        Args:
            what: The step in progress.
            done: How many steps are done.
            total: How many there are.
        """
        if self._shown is not None:
            progress, task, name = self._shown
            percent = 100 * done // max(total, 1)
            progress.update(task, description=f"{name}: {escape(what)} {percent} %")


class _Mark(SpinnerColumn):
    """A spinner that ends as a tick or a cross."""

    def __init__(self) -> None:
        super().__init__(finished_text="[green]✓[/]")

    def render(self, task: Task) -> RenderableType:
        return Text("✗", "red") if task.fields.get("failed") else super().render(task)


class _Seconds(ProgressColumn):
    """The time of a stage, to a tenth of a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.elapsed or 0:.1f} s", style="progress.elapsed")


def say(message: str) -> None:
    """Tell what was done, on a terminal only."""
    console = Console(stderr=True)
    if console.is_terminal:
        console.print(message, markup=False, highlight=False, soft_wrap=True)


def report(error: Exception, *, verbose: bool) -> None:
    """Print an error in one line; `verbose` puts its traceback and a compiler's words before it."""
    if verbose:
        traceback.print_exception(error)
        if isinstance(error, CompileError):
            print(error.diagnostics, file=sys.stderr)
    text = " ".join(str(error).split())
    if not isinstance(error, (PeltonError, OSError)):
        hint = "" if verbose else " (--verbose shows where)"
        text = f"{type(error).__name__}: {text}{hint}"
    print(f"pelton: error: {text}", file=sys.stderr)


@contextlib.contextmanager
def warnings_in_one_line(verbose: bool) -> Iterator[None]:
    """Print warnings as lines of ours; those about torch's own internals only if `verbose`."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if verbose or not is_internal(category, filename):
            print(f"pelton: warning: {' '.join(str(message).split())}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show
        yield


def is_internal(category: type[Warning], filename: str) -> bool:
    """Return whether a warning concerns torch's internals, which no user can change."""
    return not issubclass(category, UserWarning) or "/site-packages/torch/" in filename


def results_console() -> Console:
    """Return the console for results: stdout, whose lines are not wrapped where it is a file."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_NO_WRAPPING)


_NO_WRAPPING = 100_000
