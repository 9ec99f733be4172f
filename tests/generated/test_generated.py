"""Generated programs: a sample of those of `make generated`, and the tools that make them."""

from __future__ import annotations

import json
import random

import pytest
import torch

from tests.generated import check
from tests.generated import programs as generated
from tests.generated.check import quietly
from tests.generated.operators import OPERATORS
from tests.generated.programs import Program, Step, generate, inputs_of_size, shrink, sizes

SEEDS = range(8)


@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_generated_programs_are_those_of_eager(kind: str) -> None:
    drawn = [generate(seed, dynamic=kind == "dynamic") for seed in SEEDS]
    bad = [
        f"{kind} {seed}: {outcome.kind}: {outcome.text}"
        for seed, outcome in zip(SEEDS, quietly(drawn), strict=True)
        if outcome.kind not in ("right", "untraced")
    ]
    assert not bad


def test_a_seed_gives_one_program_that_eager_can_run() -> None:
    for seed in range(30):
        program = generate(seed, dynamic=True)
        assert program == generate(seed, dynamic=True)
        assert program == generated.from_data(json.loads(json.dumps(generated.to_data(program))))
        for size in sizes(dynamic=True):
            given = inputs_of_size(size)
            results = program(*given)
            assert len(results) == len(program.results)
            assert all(map(torch.equal, given, inputs_of_size(size))), "an input was written"


def test_nearly_every_operator_is_drawn() -> None:
    drawn = {step.name for seed in range(300) for step in generate(seed, dynamic=False).steps}
    assert len(set(OPERATORS) - drawn) < 5


def test_attributes_are_drawn_from_their_ranges() -> None:
    source = random.Random(0)
    drawn = {OPERATORS["roll"].draw(source) for _ in range(2000)}
    assert drawn == {(shift, dim) for shift in range(-7, 8) for dim in range(-2, 2)}


def test_a_failure_is_reduced_to_the_steps_that_it_needs() -> None:
    steps = (
        Step("neg", (0,)),
        Step("clone", (0,)),
        Step("flip_", (4,), (0,), (("slice", (1, 0, 2)),)),
        Step("abs", (3,)),
        Step("add", (4, 6)),
    )
    program = Program(False, steps, (3, 5, 7), (False, False, False))
    smallest = shrink(program, lambda given: any(step.name == "flip_" for step in given.steps))
    assert [step.name for step in smallest.steps] == ["flip_"] or [
        step.name for step in smallest.steps
    ] == ["clone", "flip_"]
    assert len(smallest.results) == 1


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(False, (Step("neg", (0,)), Step("relu", (3,))), (4,), (False,))
    monkeypatch.setattr(check, "_compiled", lambda *_: _Wrong())
    (outcome,) = quietly([program])
    assert outcome.kind == "wrong"
    assert outcome.text.startswith("size 5, call 1, result 0: ")


class _Wrong:
    def p0(self, x: torch.Tensor, *_: torch.Tensor) -> tuple[torch.Tensor]:
        return (torch.relu(-x) + (x == x.amin()),)
