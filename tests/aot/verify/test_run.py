"""The run of an artifact and a reference side by side: what is compared, noted and put back."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from pelton import aot, runtime
from pelton.aot.spec.errors import ExportError
from pelton.aot.verify.options import Numerics
from pelton.aot.verify.reference import EagerReference, Reference
from pelton.aot.verify.report import Report
from pelton.aot.verify.run import Run

ROWS = aot.NamedDimension("rows", 1, 2, 4)


class Counter(torch.nn.Module):
    """Adds its input to its state."""

    def __init__(self, first: float = 3.0) -> None:
        super().__init__()
        self.register_buffer("total", torch.full((2,), first))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.total.add_(x.sum(0))
        return x * 2, x + self.total


@functools.cache
def executable() -> runtime.Executable:
    """Return the one program that all tests run, compiled."""
    out = aot.export(Counter(), args=[aot.InputInfo((ROWS, 2), torch.float32)])
    return runtime.load(bytes(out.compile(None).map_memory()))


def reference(call: Callable[..., Any] | None = None, owner: Counter | None = None) -> Reference:
    owner = owner or Counter()
    call = call or owner
    signature = executable().functions["main"].signature
    found = EagerReference(lambda leaves: call(*leaves), signature, owner, "the reference")
    found.kept = owner  # type: ignore[attr-defined]
    return found


def verified(found: Reference, **options: Any) -> tuple[Run, Report]:
    given = {"seeds": [0], "special_values": False, **options}
    run = Run(executable(), {"main": found}, Numerics(**given))
    return run, run.report("m.vmfb")


def test_results_and_state_are_compared_at_every_size() -> None:
    run, report = verified(reference(), special_values=True)
    assert report.passed and run.failure is None
    assert {c.result for c in report.comparisons} == {"result[0]", "result[1]", "state total"}
    assert {c.sizes.values["rows"] for c in report.comparisons} >= {1, 2, 4}
    assert {str(c.filling) for c in report.comparisons} == {"random 0", "zeros", "edges"}
    assert (report.artifact, report.reference) == ("m.vmfb", "the reference")


def test_the_state_of_both_is_as_it_was_afterwards() -> None:
    owner = Counter(8.0)
    verified(reference(owner=owner))
    assert owner.total.tolist() == [8, 8]
    assert torch.as_tensor(executable().state["total"]).tolist() == [3, 3]


def test_the_state_is_put_back_after_a_failure_too() -> None:
    owner = Counter(8.0)

    def broken(x: torch.Tensor) -> Any:
        owner(x)
        raise ValueError("broken")

    with pytest.raises(ExportError, match=r"main\(\): nothing could be compared: .*broken"):
        verified(reference(broken, owner))
    assert owner.total.tolist() == [8, 8]


def test_the_first_call_that_differs_is_kept_with_its_inputs_and_the_state_before_it() -> None:
    owner = Counter()
    calls: list[torch.Tensor] = []

    def wrong(x: torch.Tensor) -> Any:
        calls.append(x.clone())
        doubled, total = owner(x)
        return doubled + (x.shape[0] == 4), total

    run, report = verified(reference(wrong, owner), seeds=[0, 1])
    assert not report.passed
    assert {c.result for c in report.comparisons if not c.passed} == {"result[0]"}
    assert run.failure is not None
    assert run.failure.function == "main"
    assert run.failure.sizes.values == {"rows": 4}
    assert run.failure.leaves[0].shape == (4, 2)
    assert any(torch.equal(run.failure.leaves[0], call) for call in calls)
    assert run.failure.state["total"].tolist() == [3, 3]


def test_state_that_differs_is_found_though_the_results_agree() -> None:
    owner = Counter()

    def forgetful(x: torch.Tensor) -> Any:
        found = owner(x)
        with torch.no_grad():
            results = tuple(value.clone() for value in found)
            owner.total.add_(1)
        return results

    _, report = verified(reference(forgetful, owner))
    assert {c.result for c in report.comparisons if not c.passed} == {"state total"}


def test_random_results_are_noted_and_left_out() -> None:
    owner = Counter()
    _, report = verified(reference(lambda x: (x * torch.rand(2), owner(x)[1]), owner))
    assert report.notes == ("results [0] are random and were not compared",)
    assert {c.result for c in report.comparisons} == {"result[1]", "state total"}


def test_sizes_that_the_reference_refuses_are_noted_and_change_no_state() -> None:
    owner = Counter()

    def picky(x: torch.Tensor) -> Any:
        found = owner(x)
        if x.shape[0] == 4:
            raise ValueError("not\n four")
        return found

    _, report = verified(reference(picky, owner), seeds=[0, 1])
    assert report.passed
    assert any(
        "at max (rows=4), inputs random 0 left out: the reference refuses it (ValueError: not four)"
        in note
        for note in report.notes
    )


def test_inputs_that_take_too_much_memory_are_left_out() -> None:
    _, report = verified(reference(), memory_limit_bytes=16)
    assert any("main() at max (rows=4) left out: its inputs take 0 MiB" in n for n in report.notes)
    assert {c.sizes.values["rows"] for c in report.comparisons} == {1, 2}


def test_options_for_no_input_are_refused_before_anything_runs() -> None:
    def never(x: torch.Tensor) -> Any:
        raise AssertionError("run")

    with pytest.raises(ExportError, match="'y' is no integer input"):
        verified(reference(never), integers={"y": (0, 1)})
