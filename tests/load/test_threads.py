"""Calls from several threads give what calls from one give, bit by bit."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from pelton import runtime

THREADS = 8
SIZES = (0, 1, 2, 3, 7, 16, 33, 128, 300)

FEW_OR_MANY = [pytest.param(100, id="few"), pytest.param(2000, id="many", marks=pytest.mark.load)]
"""Calls of each thread."""


@pytest.mark.parametrize("calls", FEW_OR_MANY)
def test_threads_get_the_bits_that_one_gets(net: Path, calls: int) -> None:
    executable = runtime.load(net)
    generator = torch.Generator().manual_seed(1)
    inputs = [torch.randn(size, 8, generator=generator) for size in SIZES]
    wanted = [executable(x) for x in inputs]

    def work(thread: int) -> int:
        wrong = 0
        for call in range(calls):
            index = (call * 7 + thread) % len(SIZES)
            got = executable(inputs[index])
            wrong += not all(torch.equal(got[name], wanted[index][name]) for name in got)
        return wrong

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(THREADS))) == [0] * THREADS


@pytest.mark.parametrize("calls", FEW_OR_MANY)
def test_calls_that_change_state_come_one_after_the_other(counter: Path, calls: int) -> None:
    executable = runtime.load(counter)

    def work(thread: int) -> list[int]:
        step = torch.tensor([thread + 1])
        return [int(executable(step)) for _ in range(calls)]

    with ThreadPoolExecutor(THREADS) as pool:
        seen = list(pool.map(work, range(THREADS)))
    assert all(totals == sorted(totals) for totals in seen)
    together = sorted(total for totals in seen for total in totals)
    assert len(set(together)) == THREADS * calls
    assert int(executable.state["total"]) == together[-1] == calls * sum(range(1, THREADS + 1))


def test_loads_from_several_threads_are_of_one_kind(net: Path) -> None:
    x = torch.ones(3, 8)
    wanted = runtime.load(net)(x)["y"]
    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(lambda _: runtime.load(net)(x)["y"], range(4 * THREADS)))
    assert all(torch.equal(result, wanted) for result in results)
