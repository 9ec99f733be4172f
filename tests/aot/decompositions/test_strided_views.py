"""Strided views count from the start of the memory, whatever view they are taken of."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from pelton import aot, runtime

VIEWS: dict[str, Callable[[Tensor], Any]] = {
    "slice": lambda x: x[6:].as_strided((2, 3), (3, 1), 0),
    "slice, from its start": lambda x: x[6:].as_strided((2, 3), (3, 1)),
    "select": lambda x: torch.as_strided(x.view(4, 6)[1], (2,), (1,), 3),
    "beyond the view": lambda x: x[2:4].as_strided((3,), (5,)),
    "part of a split": lambda x: x.split(8)[1].as_strided((2,), (1,), storage_offset=23 - 1),
    "transposed": lambda x: x.view(4, 6).t().as_strided((3,), (7,), 1),
    "of a transposed layout": lambda x: x.view(4, 6).t().exp().as_strided((2,), (1,), 1),
    "no elements": lambda x: x[6:].as_strided((0, 2), (1, 1), 24),
    "no dimensions": lambda x: x[6:].as_strided((), (), 5),
    "of strided": lambda x: x.as_strided((6,), (1,), 2).as_strided((2,), (1,), 0),
    "after an empty slice": lambda x: (
        x.as_strided((4,), (1,), 0).expand(1, 4)[1:].as_strided((1,), (1,))
    ),
    "a copy is memory of its own": lambda x: x[6:].clone().as_strided((2,), (1,), 0),
    "as_strided_copy": lambda x: torch.as_strided_copy(x[6:], (2,), (1,), 0),
    "as_strided_scatter": lambda x: torch.as_strided_scatter(x[6:], x[:2], (2,), (3,), 9),
}


def _write_before_the_view(x: Tensor) -> Any:
    y = x * 2
    y[6:].as_strided((2, 2), (8, 1), 1).add_(100)
    return y, y.view(4, 6)[2].as_strided((2,), (1,), 0)


def _in_place(x: Tensor) -> Tensor:
    y = x[6:] * 2
    z = y[1:]
    return z.as_strided_((2,), (1,), 0)


def test_offsets_count_from_the_start_of_the_memory(check: Callable[..., None]) -> None:
    programs = {**VIEWS, "write": _write_before_the_view, "in place": _in_place}
    check(programs, [torch.arange(24.0)])


def test_offsets_of_tensors_of_dynamic_size(check: Callable[..., None]) -> None:
    sizes = {0: torch.export.Dim("n", min=8, max=40)}
    programs = {
        "slice": lambda x: x[6:].as_strided((2, 3), (3, 1), 0),
        "from a place that varies": lambda x: x[x.shape[0] // 2 :].as_strided((2,), (2,)),
        "of varying size": lambda x: x[2:].as_strided((x.shape[0] - 1,), (1,), 1),
    }
    check(programs, *[[torch.arange(float(n))] for n in (24, 8, 40)], dynamic=[sizes])


def test_a_program_from_a_file_has_the_same_offsets() -> None:
    """Its values share no memory."""
    file = io.BytesIO()
    x = torch.arange(24.0)

    class Model(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x * 2).view(4, 6)[2].as_strided((2,), (1,), 3)

    torch.export.save(torch.export.export(Model(), (x,)), file)
    file.seek(0)
    out = aot.export(torch.export.load(file))
    assert runtime.load(bytes(out.compile().map_memory()))(x).tolist() == [6, 8]


class _Part(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("part", torch.arange(10.0)[4:])

    def forward(self, x: Tensor) -> Tensor:
        return x[:2] + self.part.as_strided((2,), (1,), 0)


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (_Part(), "begins 4 elements before the tensor"),
        (lambda x: torch.as_strided_scatter(x.view(4, 6).t(), x[:2], (2,), (1,)), "row after row"),
        (lambda x: x.view(torch.int32)[6:].as_strided((2,), (1,), 0), r"other elements \(torch.f"),
        (lambda x: torch.as_strided_scatter(x[6:], x[:2], (2,), (1,), 0), "begins 6 elements"),
        (lambda x: torch.cond(x.sum() > 0, lambda y: y.as_strided((2,), (1,), 8) + 0,
                              lambda y: y[:2] * 2, (x[6:],)), "within a branch or loop"),
    ],
    ids=["buffer", "layout", "other elements", "scatter", "branch"],
)  # fmt: skip
def test_a_view_whose_place_is_not_known_is_refused(program: Any, message: str) -> None:
    with pytest.raises(aot.UnsupportedOpError, match=message) as caught:
        aot.export(program, args=(torch.arange(24.0),))
    assert caught.value.location is not None and "test_strided_views" in str(caught.value.location)
