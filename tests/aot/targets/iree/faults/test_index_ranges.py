"""Ranges of integers: what is known of the elements of a tensor, and what is not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pelton import aot
from pelton.aot.ir.module import operations_within
from pelton.aot.targets.iree.faults.index_ranges import Range, range_of

X, PLACES = torch.arange(20.0).reshape(5, 4), torch.tensor([0, 2])

RANGES: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], Range | None]] = {
    "an argument": (lambda x, i: i + 0 * i, None),
    "arange": (lambda x, i: torch.arange(7), Range(0, 6)),
    "arange from": (lambda x, i: torch.arange(2, 7), Range(2, 6)),
    "arange down": (lambda x, i: torch.arange(6, -3, -2), Range(-2, 6)),
    "nothing": (lambda x, i: torch.arange(0), Range(0, 0)),
    "argmax": (lambda x, i: x.argmax(1), Range(0, 3)),
    "argmax of all": (lambda x, i: x.argmax(), None),
    "clamped": (lambda x, i: i.clamp(-2, 3), Range(-2, 3)),
    "clamped from below": (lambda x, i: i.clamp(min=0), None),
    "known and clamped": (lambda x, i: torch.arange(9).clamp(min=4), Range(4, 8)),
    "modulo": (lambda x, i: i % 6, Range(0, 5)),
    "modulo a negative": (lambda x, i: i % -6, None),
    "moved": (lambda x, i: torch.arange(6).view(2, 3).t()[1:].flip(0), Range(0, 5)),
    "triangle": (lambda x, i: torch.full((3, 3), 5).tril(), Range(0, 5)),
    "sum": (lambda x, i: i % 6 + torch.arange(2), Range(0, 6)),
    "difference": (lambda x, i: torch.arange(2) - i % 6, Range(-5, 1)),
    "scaled sum": (lambda x, i: torch.add(i % 6, torch.arange(2), alpha=9), None),
    "product": (lambda x, i: torch.arange(-2, 3) * 4, Range(-8, 8)),
    "too large": (lambda x, i: torch.arange(3) * 2**31, None),
    "chosen": (lambda x, i: torch.where(i > 0, i % 3, 7), Range(0, 7)),
    "joined": (lambda x, i: torch.cat([i % 3, torch.arange(9)]), Range(0, 8)),
    "joined with an argument": (lambda x, i: torch.cat([i % 3, i]), None),
    "narrowed": (lambda x, i: (i % 6).int(), Range(0, 5)),
    "of a float": (lambda x, i: x.long(), None),
    "truth": (lambda x, i: (x > 1).long(), Range(0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_range(name: str) -> None:
    program, expected = RANGES[name]
    output = aot.export(program, args=(X, PLACES))
    (end,) = operations_within(output.mlir_module.operation, "func.return")
    assert range_of(end.operands[0]) == expected
