"""Generated programs: lists of steps, run by eager PyTorch and traced from the same code."""

from __future__ import annotations

import dataclasses
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .operators import FLOW, OPERATORS, PURE, VIEWS, WRITES, Attributes, Operator

SIZES = (5, 2, 7)
"""Values of the dynamic size; the first is that of the trace, and of programs of fixed sizes.

None is 1: programs with a branch on a size of 1 would be refused.
"""

_MOST_ELEMENTS = 400
_LARGEST = 2.0**14


@dataclass(frozen=True)
class Step:
    """One operator of a program.

    Attributes:
        name: The operator.
        operands: Which of the values so far it takes: inputs first, then a value for each step.
        attributes: The operator's attributes.
        views: Of a write in place: the views through which it writes, each with its attributes.
    """

    name: str
    operands: tuple[int, ...]
    attributes: Attributes = ()
    views: tuple[tuple[str, Attributes], ...] = ()


@dataclass(frozen=True)
class Program:
    """A program of tensors.

    Attributes:
        dynamic: Whether the first dimension of its inputs is dynamic.
        steps: Its operators, in order.
        results: Which of the values it returns.
        inexact: Which of these are not exact in float32.
    """

    dynamic: bool
    steps: tuple[Step, ...]
    results: tuple[int, ...]
    inexact: tuple[bool, ...]

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        values = list(inputs)
        for step in self.steps:
            values.append(_apply(step, values))
        return tuple(values[place] for place in self.results)


def inputs_of_size(size: int) -> tuple[Tensor, ...]:
    """Return the inputs of every program: floats, integers and a vector of bools."""
    source = torch.Generator().manual_seed(size)
    quarters = torch.randint(-12, 13, (size, 4), generator=source) / 4
    whole = torch.randint(-3, 4, (size, 3), generator=source)
    return quarters, whole, torch.randint(0, 2, (size,), generator=source).bool()


def _apply(step: Step, values: Sequence[Tensor]) -> Tensor:
    operator = OPERATORS[step.name]
    operands = [values[place] for place in step.operands]
    for name, attributes in step.views:
        operands[0] = VIEWS[name].apply(operands[0], *attributes)
    if step.name in WRITES and 0 in operands[0].stride() and operands[0].numel() > 1:
        raise ValueError("elements of an expanded tensor cannot be written one by one")
    result = operator.apply(*operands, *step.attributes)
    return operands[0] if step.name in WRITES else result


class _Draft:
    """A program in the making, run at several sizes at once."""

    def __init__(self, source: random.Random, sizes: Sequence[int], *, dynamic: bool) -> None:
        self.source = source
        self.dynamic = dynamic
        self.runs = [list(inputs_of_size(size)) for size in sizes]
        self.inputs = len(self.runs[0])
        self.steps: list[Step] = []
        self.inexact = [False] * self.inputs

    def add(self, names: Sequence[str]) -> bool:
        """Add one of the operators, if it can be applied to some values at all sizes."""
        name = self.source.choice(list(names))
        operator = OPERATORS[name]
        count = len(self.runs[0])
        recent = [self.source.randrange(max(0, count - 6), count) for _ in range(operator.arity)]
        places = tuple(
            place if self.source.random() < 0.7 else self.source.randrange(count)
            for place in recent
        )
        if not operator.stable and any(self.inexact[place] for place in places):
            return False
        step = Step(name, places, operator.draw(self.source), self._views(name))
        if not self._fits(operator, step):
            return False
        before = [[value.clone() for value in values] for values in self.runs]
        try:
            results = [_apply(step, values) for values in self.runs]
        except (RuntimeError, IndexError, ValueError, TypeError):
            self._restore(before)
            return False
        if not self._is_sound(results):
            self._restore(before)
            return False
        for values, result in zip(self.runs, results, strict=True):
            values.append(result)
        self.steps.append(step)
        inexact = not operator.exact or any(self.inexact[place] for place in places)
        self.inexact.append(inexact)
        if name in WRITES and inexact:
            self._spread(places[0])
        return True

    def _views(self, name: str) -> tuple[tuple[str, Attributes], ...]:
        if name not in WRITES:
            return ()
        names = [self.source.choice(list(VIEWS)) for _ in range(self.source.randrange(3))]
        views = [view for view in names if view != "expand"]
        return tuple((view, VIEWS[view].draw(self.source)) for view in views)

    def _fits(self, operator: Operator, step: Step) -> bool:
        first = self.runs[0][step.operands[0]]
        if operator.floats and not first.is_floating_point():
            return False
        if step.name in WRITES:  # only to what the program has made
            owned = {value.untyped_storage().data_ptr() for value in self.runs[0][: self.inputs]}
            return first.untyped_storage().data_ptr() not in owned and first.dtype != torch.bool
        return True

    def _is_sound(self, results: Sequence[Tensor]) -> bool:
        if not all(isinstance(result, Tensor) for result in results):
            return False
        values = [value for run in self.runs for value in run] + list(results)
        fine = all(
            value.numel() <= _MOST_ELEMENTS
            and bool((value.abs() <= _LARGEST).all() if value.dtype != torch.bool else True)
            for value in values
        )
        return fine and len({result.dim() for result in results}) == 1

    def _restore(self, before: Sequence[Sequence[Tensor]]) -> None:
        for values, copies in zip(self.runs, before, strict=True):
            for value, copy in zip(values, copies, strict=True):
                if not torch.equal(value, copy):
                    value.copy_(copy)

    def _spread(self, place: int) -> None:
        """Mark all values that share the storage of an inexact one."""
        storage = self.runs[0][place].untyped_storage().data_ptr()
        for number, value in enumerate(self.runs[0]):
            if value.untyped_storage().data_ptr() == storage:
                self.inexact[number] = True

    def program(self) -> Program:
        count = len(self.runs[0])
        made = range(self.inputs, count)
        results = sorted(self.source.sample(made, min(len(made), self.source.randint(1, 4))))
        if self.source.random() < 0.3:
            results.append(self.source.randrange(count))
        inexact = tuple(self.inexact[place] for place in results)
        return Program(self.dynamic, tuple(self.steps), tuple(results), inexact)


def generate(seed: int, *, dynamic: bool) -> Program:
    """Return a program of 3 to 15 operators.

    Args:
        seed: What it is drawn from.
        dynamic: Whether its inputs have a dynamic dimension.
    """
    source = random.Random(f"{seed} {dynamic}")
    draft = _Draft(source, sizes(dynamic=dynamic), dynamic=dynamic)
    wanted = source.randint(3, 15)
    families = [PURE] * 6 + [VIEWS] * 2 + [WRITES] * 3 + ([FLOW] if source.random() < 0.3 else [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what torch says of a step that is tried
        for _ in range(60 * wanted):
            draft.add(list(source.choice(families)))
            if len(draft.steps) == wanted:
                break
    return draft.program()


def sizes(*, dynamic: bool) -> tuple[int, ...]:
    """Return the sizes that a program is called with."""
    return SIZES if dynamic else SIZES[:1]


def smaller(program: Program) -> Iterator[Program]:
    """Yield programs with a step or a result less, to find the smallest that fails."""
    inputs = len(inputs_of_size(1))
    for number in range(len(program.results)):
        if len(program.results) > 1:
            kept = [place for place in range(len(program.results)) if place != number]
            yield dataclasses.replace(
                program,
                results=tuple(program.results[place] for place in kept),
                inexact=tuple(program.inexact[place] for place in kept),
            )
    for number in reversed(range(len(program.steps))):
        removed = inputs + number
        step = program.steps[number]

        def moved(place: int, removed: int = removed, other: int = step.operands[0]) -> int:
            place = other if place == removed else place
            return place - 1 if place > removed else place

        steps = [
            dataclasses.replace(each, operands=tuple(map(moved, each.operands)))
            for each in (*program.steps[:number], *program.steps[number + 1 :])
        ]
        yield dataclasses.replace(
            program, steps=tuple(steps), results=tuple(map(moved, program.results))
        )


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Return a program that still fails, of which each smaller one does not.

    Args:
        program: A program that fails.
        fails: Whether a program fails in the same way.
    """
    for candidate in smaller(program):
        if _runs(candidate) and fails(candidate):
            return shrink(candidate, fails)
    return program


def _runs(program: Program) -> bool:
    try:
        for size in sizes(dynamic=program.dynamic):
            given = inputs_of_size(size)
            kept = [value.clone() for value in given]
            program(*given)
            if not all(map(torch.equal, given, kept)):
                return False
    except (RuntimeError, IndexError, ValueError, TypeError):
        return False
    return True


def to_data(program: Program) -> dict[str, Any]:
    """Return a program as what JSON can hold."""
    return dataclasses.asdict(program)


def from_data(data: dict[str, Any]) -> Program:
    """Return the program of data that `to_data` made and JSON kept."""
    steps = tuple(
        Step(
            step["name"],
            tuple(step["operands"]),
            tuple(step["attributes"]),
            tuple((name, tuple(attributes)) for name, attributes in step["views"]),
        )
        for step in data["steps"]
    )
    return Program(data["dynamic"], steps, tuple(data["results"]), tuple(data["inexact"]))
