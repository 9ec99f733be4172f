"""Diagnosis of violated size constraints: argument, dimension, reason and source line.

torch.export reports violated size constraints in terms of its own inputs. When it does, the program
is traced once more with all sizes free, watching where each constraint on sizes arises.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, NoReturn

import sympy
import torch
from torch.overrides import TorchFunctionMode

from ..compat.interpreter import calling_frame
from ..compat.symbolic import backed_size_oblivious
from ..spec.errors import DynamicShapeError, SourceLocation
from ..spec.locations import is_installed_file, is_user_file, user_location
from .arguments import Arguments, InputLeaf

_LOG = logging.getLogger("pelton")

_SIZE = re.compile(r"L\['leaves'\]\[(\d+)\]\.size\(\)\[(\d+)\]|L\['leaves'\]\[(\d+)\]")


def is_size_constraint(error: Exception) -> bool:
    """Return whether an error of torch.export is its report of a violated size constraint."""
    return "Constraints violated" in str(error)


def explain_failure(error: Exception, flat: torch.nn.Module, arguments: Arguments) -> NoReturn:
    """Raise the DynamicShapeError for torch.export's report of a size constraint.

    Args:
        error: What torch.export raised.
        flat: The module that was traced.
        arguments: Its arguments.

    Raises:
        DynamicShapeError: Names argument, dimension, reason and line.
    """
    text = str(error)
    reasons = re.findall(r"^  - (.*(?:\n(?!  - |\S|$).*)*)", text, re.MULTILINE)
    fixes = re.search(r"Suggested fixes:\n((?:  .*\n?)+)", text)
    subjects = _subjects(text, arguments)
    line = _where_constrained(flat, arguments, subjects)
    message = (
        f"{_names(subjects) or 'a size'} cannot be dynamic as asked: "
        f"{' '.join(_plain(reason, arguments) for reason in reasons)}"
    )
    if fixes:
        message += f" The program would allow: {'; '.join(fixes[1].split(chr(10))).strip('; ')}."
    raise DynamicShapeError(" ".join(message.split()), location=line) from error


def _subjects(text: str, arguments: Arguments) -> list[tuple[InputLeaf, int]]:
    """Return the sizes that a report is about: those it spells out, and those of named dims."""
    found = [(int(m[1]), int(m[2])) for m in _SIZE.finditer(text) if m[1] is not None]
    named = set()
    header = re.search(r"Constraints violated \(([^)]*(?:\(\)[^)]*)*)\)", text)
    if header:
        named = {name.strip() for name in header[1].split(",")}
    named |= set(re.findall(r"You marked (\w+) as dynamic", text))
    for position, leaf in enumerate(arguments.inputs):
        for axis, spec in leaf.axes.items():
            if getattr(spec.torch, "__name__", None) in named:
                found.append((position, axis))
    return [(arguments.inputs[position], axis) for position, axis in dict.fromkeys(found)]


def _names(subjects: Sequence[tuple[InputLeaf, int]]) -> str:
    return ", ".join(_name(leaf, axis) for leaf, axis in subjects)


def _name(leaf: InputLeaf, axis: int) -> str:
    spec = leaf.axes.get(axis)
    called = f" ({spec.name!r})" if spec and spec.name else ""
    return f"argument {leaf.path}: dimension {axis}{called}"


def _plain(reason: str, arguments: Arguments) -> str:
    """Return one of torch's reasons in terms of the user's arguments."""

    def name(match: re.Match[str]) -> str:
        if match[3] is not None:
            return arguments.inputs[int(match[3])].path
        return f"{arguments.inputs[int(match[1])].path}.shape[{match[2]}]"

    reason = _SIZE.sub(name, reason.split(" If you're using mark_dynamic")[0])
    reason = re.sub(
        r"You marked (.*?) as dynamic but your code specialized it to be a constant \((\d+)\)",
        r"the program fixes \1 to \2",
        reason,
    )
    return reason.rstrip(".") + "."


class _ConstraintLines(TorchFunctionMode):
    """Notes the user's line for each constraint on sizes that arises while it is active."""

    def __init__(self) -> None:
        super().__init__()
        self.environment: Any = None
        self.lines: list[tuple[int, SourceLocation]] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = self._count()
        result = func(*args, **(kwargs or {}))
        if self._count() > before:
            location = user_location(calling_frame(1))
            if location is not None:
                self.lines.append((before, location))
        return result

    def _count(self) -> int:
        return len(self.environment.guards) if self.environment is not None else 0


def _watch(flat: torch.nn.Module, arguments: Arguments) -> _ConstraintLines:
    """Trace with all sizes free and size-oblivious, recording the line of each guard."""
    watch = _ConstraintLines()

    class Watched(torch.nn.Module):
        def forward(self, *leaves: Any) -> Any:
            for leaf in leaves:
                for size in leaf.shape if isinstance(leaf, torch.Tensor) else (leaf,):
                    if isinstance(size, torch.SymInt):
                        watch.environment = size.node.shape_env
            with watch:
                return flat(*leaves)

    auto = torch.export.Dim.AUTO
    free = tuple(
        {axis: auto for axis in leaf.axes} if isinstance(leaf.example, torch.Tensor) else auto
        for leaf in arguments.inputs
    )
    examples = tuple(leaf.example for leaf in arguments.inputs)
    try:
        with backed_size_oblivious(True):
            torch.export.export(Watched(), examples, dynamic_shapes=(free,), strict=False)
    except Exception as error:  # the diagnosis must never replace the error that it is about
        _LOG.debug("the trace with free sizes stopped early: %s", error)
    return watch


def branches_on_size(flat: torch.nn.Module, arguments: Arguments) -> bool:
    """Return whether the user's own Python branches on a size being 1.

    Args:
        flat: The module that was traced.
        arguments: Its arguments.
    """
    watch = _watch(flat, arguments)
    guards = watch.environment.guards if watch.environment is not None else ()
    return any(asks_of_one(guard) for guard in guards)


def _where_constrained(
    flat: torch.nn.Module, arguments: Arguments, subjects: Sequence[tuple[InputLeaf, int]]
) -> SourceLocation | None:
    """Return the user's line of the first constraint on `subjects`."""
    watch = _watch(flat, arguments)
    if watch.environment is None:
        return None
    positions = {id(leaf): position for position, leaf in enumerate(arguments.inputs)}
    wanted = {f"L['leaves'][{positions[id(leaf)]}].size()[{axis}]" for leaf, axis in subjects}
    sources = getattr(watch.environment, "var_to_sources", {})
    symbols = {
        symbol for symbol, names in sources.items() if wanted & {str(_source(n)) for n in names}
    }
    for number, guard in enumerate(watch.environment.guards):
        if not symbols or symbols & guard.expr.free_symbols:
            return own_line(guard) or _noted_line(watch, number)
    return None


def _source(source: Any) -> str:
    name = source.name
    return str(name() if callable(name) else name)


def asks_of_one(guard: Any) -> bool:
    """Return whether a guard is a branch of the user's own Python on a size being 1.

    Installed packages do so to skip work (a mask that hides nothing, say), with the same result.
    """
    line = own_line(guard)
    if line is None or is_installed_file(line.file):
        return False
    expression, symbols = guard.expr, guard.expr.free_symbols
    if isinstance(expression, sympy.Ne) and any(fails_at_one(expression, s) for s in symbols):
        return True
    return any(_differs_at_one(expression, symbol) for symbol in symbols)


def _differs_at_one(expression: Any, symbol: Any) -> bool:
    """Return whether a relation has one value for all sizes from 2 on, and the other for 1."""
    larger = expression.subs(symbol, sympy.Symbol("excess", integer=True, nonnegative=True) + 2)
    return {larger, expression.subs(symbol, 1)} == {sympy.true, sympy.false}


def fails_at_one(expression: Any, symbol: Any) -> bool:
    """Return whether a relation between sizes does not hold where one of them is 1."""
    try:
        return bool(expression.subs(symbol, 1) == sympy.false)
    except ZeroDivisionError:  # a remainder by 0: the program has no such size
        return False


def own_line(guard: Any) -> SourceLocation | None:
    """Return the line where a branch of the program's Python compared a size."""
    frame = getattr(guard.sloc, "framework_loc", None)
    filename, lineno = getattr(frame, "filename", None), getattr(frame, "lineno", None)
    if filename and lineno and is_user_file(filename):
        return SourceLocation(filename, lineno)
    return None


def _noted_line(watch: _ConstraintLines, number: int) -> SourceLocation | None:
    earlier = [location for before, location in watch.lines if before <= number]
    return earlier[-1] if earlier else None
