"""Jobs of a benchmark: as text between processes, and their arguments as values."""

from __future__ import annotations

import json

import pytest
import torch

from pelton.aot.bench import example_inputs
from pelton.aot.bench.job import Job, Subject
from pelton.aot.spec.inputs import DimensionInputInfo, InputInfo, NamedDimension

JOB = Job("zoo:net", ("2x4xf32", "n=5"), "cpu", "/tmp/\u00e9 x", 2, "cuda", 7)


def test_a_job_is_one_line_and_comes_back() -> None:
    text = JOB.to_json()
    assert "\n" not in text
    assert Job.from_json(text) == JOB
    assert Job.from_json(Job("a:b", (), "eager", "").to_json()).inputs == ()


@pytest.mark.parametrize(
    "change",
    [{"threads": "2"}, {"inputs": "2x4xf32"}, {"runner": None}],
    ids=["number", "list", "null"],
)
def test_a_damaged_job_is_refused(change: dict) -> None:
    with pytest.raises((ValueError, TypeError), match="job"):
        Job.from_json(json.dumps({**json.loads(JOB.to_json()), **change}))


def test_inputs_are_of_the_middle_size_and_the_same_each_time() -> None:
    specs = [
        InputInfo((NamedDimension("n", 1, 3, 9), 2), torch.bfloat16),
        {"ids": InputInfo(((1, 4, 8),), torch.int64), "n": DimensionInputInfo((1, 5, 6))},
        7,
    ]
    x, named, constant = example_inputs(specs, seed=1)
    assert x.shape == (3, 2)
    assert x.dtype == torch.bfloat16
    assert set(named["ids"].tolist()) <= {0, 1}
    assert (named["n"], constant) == (5, 7)
    assert torch.equal(example_inputs(specs, seed=1)[0], x)
    assert not torch.equal(example_inputs(specs, seed=2)[0], x)


def test_tensors_that_are_given_are_left() -> None:
    given = torch.zeros(2)
    assert example_inputs({"a": (given, None)})["a"] == (given, None)
    assert example_inputs([]) == []


def test_positional_and_keyword_arguments_are_drawn_from_one_generator() -> None:
    spec = InputInfo((4,), torch.float32)
    args, kwargs = Subject(torch.nn.ReLU(), (spec,), {"other": spec, "n": 3}, seed=1).values()
    assert kwargs["n"] == 3
    assert not torch.equal(args[0], kwargs["other"])
    again, _ = Subject(torch.nn.ReLU(), (spec,), {}, seed=1).values()
    assert torch.equal(again[0], args[0])


def test_tensors_are_moved_to_the_device() -> None:
    subject = Subject(torch.nn.ReLU(), (torch.zeros(2), 5), {"x": [torch.zeros(1)]})
    args, kwargs = subject.values("meta")
    assert (args[0].device.type, args[1], kwargs["x"][0].device.type) == ("meta", 5, "meta")
