"""Dynamic sizes of 1 that are broadcast: fixed where the trace may, refused otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.export import Dim

from pelton import aot
from pelton.aot.capture.broadcast_sizes import broadcast_sizes, sizes_of_one
from pelton.aot.capture.trace import capture

from ...programs import assert_equals_eager, compiled

FUNCTIONS: dict[str, Callable[..., torch.Tensor]] = {
    "maximum": lambda x, y: torch.maximum(x, y),
    "where": lambda x, y: torch.where(x > 0.5, x, y),
    "expand": lambda x, y: x.expand_as(y),
    "add": lambda x, y: x + y,
}
ARGUMENTS = torch.rand(1, 3), torch.rand(4, 3)


def shapes(size: Any) -> Any:
    return ({0: size, 1: Dim.AUTO}, {0: Dim.AUTO, 1: Dim.AUTO})


@pytest.mark.filterwarnings("ignore:.*is fixed to 1")
def test_an_automatic_size_of_one_is_broadcast(tmp_path: Path) -> None:
    def run(x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {name: function(x, y) for name, function in FUNCTIONS.items()}

    exe = compiled(tmp_path, run, ARGUMENTS, dynamic_shapes=shapes(Dim.AUTO))
    assert_equals_eager(exe, run, ARGUMENTS, (torch.rand(1, 2), torch.rand(5, 2)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_automatic_size_of_one_is_fixed_with_a_warning(name: str) -> None:
    with pytest.warns(UserWarning, match=r"x: dimension 0 \(Dim.AUTO\) is fixed to 1"):
        out = aot.export(FUNCTIONS[name], args=ARGUMENTS, dynamic_shapes=shapes(Dim.AUTO))
    assert out.signatures["main"].inputs[0].shape[0] == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_another_size_of_one_is_refused(name: str) -> None:
    with pytest.raises(aot.PeltonError, match=r"x: dimension 0 .* is broadcast|must match"):
        aot.export(FUNCTIONS[name], args=ARGUMENTS, dynamic_shapes=shapes(Dim.DYNAMIC))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_named_size_must_equal_the_other(name: str) -> None:
    try:
        out = aot.export(FUNCTIONS[name], args=ARGUMENTS, dynamic_shapes=shapes("n"))
    except aot.PeltonError as error:
        assert "must match" in str(error)
    else:
        x, y = out.signatures["main"].inputs
        assert x.shape == y.shape


def test_sizes_of_one_that_are_not_broadcast_stay_dynamic() -> None:
    captured = capture(lambda x: x * 2, ARGUMENTS[:1], {}, ({0: Dim.AUTO, 1: Dim.AUTO},))
    assert broadcast_sizes(captured.program) == {}
    assert sizes_of_one(captured.arguments) == [(0, 0)]
