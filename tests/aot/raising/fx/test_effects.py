"""Side effects of raised graphs: assertions and printing."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.raising.fx.effects import require, show
from pelton.aot.spec.errors import PeltonError


@pytest.mark.parametrize("condition", [True, torch.tensor(True), 1])
def test_a_condition_that_holds_passes(condition: object) -> None:
    require(condition, "wrong")


@pytest.mark.parametrize("condition", [False, torch.tensor(False), 0])
def test_a_condition_that_does_not_hold_stops_with_its_message(condition: object) -> None:
    with pytest.raises(PeltonError, match=r"^sizes differ$"):
        require(condition, "sizes differ")


def test_tensors_are_shown_on_stderr_under_their_title(capsys: pytest.CaptureFixture[str]) -> None:
    show("x", torch.tensor([1, 2]), torch.tensor(3.5))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "=== x ===\ntensor([1, 2])\ntensor(3.5000)\n"
