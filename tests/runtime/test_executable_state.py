"""State between calls, and calls from many threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch

from pelton import runtime
from pelton.runtime.errors import SignatureError

from .conftest import Compiled

ONES = torch.ones(4)
THREADS = 8


@pytest.fixture
def counter(compiled: Compiled) -> runtime.Executable:
    return runtime.load(compiled("counter"))


def test_state_is_kept_between_calls(counter: runtime.Executable) -> None:
    assert [counter(ONES)[0].item() for _ in range(3)] == [1, 2, 3]


def test_state_is_read_by_its_name_in_the_model(counter: runtime.Executable) -> None:
    assert set(counter.state) == {"total", "odd", "calls"}
    assert len(counter.state) == 3
    counter(ONES)
    assert counter.state["total"].tolist() == [1, 1, 1, 1]
    assert counter.state["odd"].tolist() == [True, True]
    assert counter.state["calls"].tolist() == 1
    assert counter.state["odd"].dtype is torch.bool
    assert counter.state["calls"].dtype is torch.int64


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("total", torch.tensor([1.0, 2.0, 3.0, 4.0])),
        ("total", np.arange(4, dtype=np.float32)),
        ("odd", torch.tensor([True, False])),
        ("odd", np.array([False, True])),
        ("calls", torch.tensor(41)),
        ("calls", np.int64(41)),
    ],
)
def test_state_that_is_set_is_read_back(counter: runtime.Executable, name: str, value: Any) -> None:
    counter.state[name] = value
    assert counter.state[name].tolist() == value.tolist()


def test_state_that_is_set_counts_for_the_next_call(counter: runtime.Executable) -> None:
    counter.state["total"] = torch.tensor([10.0, 20.0, 30.0, 40.0])
    assert counter(ONES).tolist() == [11, 21, 31, 41]


@pytest.mark.parametrize("make", [torch.zeros, lambda n: np.zeros(n, np.float32)])
def test_tensor_that_state_was_set_to_stays_the_callers(
    counter: runtime.Executable, make: Callable[[int], Any]
) -> None:
    value = make(4)
    counter.state["total"] = value
    value[:] = 99
    assert counter(ONES).tolist() == [1, 1, 1, 1]
    assert value.tolist() == [99, 99, 99, 99]


def test_state_that_was_read_is_a_copy(counter: runtime.Executable) -> None:
    counter(ONES)
    read = counter.state["total"]
    read[:] = 99
    counter(ONES)
    assert read.tolist() == [99, 99, 99, 99]
    assert counter.state["total"].tolist() == [2, 2, 2, 2]


def test_state_that_was_read_stays_when_a_call_changes_it(counter: runtime.Executable) -> None:
    read = [counter.state["total"] for _ in range(3) if counter(ONES) is not None]
    assert [each[0].item() for each in read] == [1, 2, 3]


def test_reset_puts_the_initial_state_back(counter: runtime.Executable) -> None:
    result = counter(ONES)
    counter.reset_state()
    assert counter.state["total"].tolist() == [0, 0, 0, 0]
    assert counter.state["odd"].tolist() == [False, False]
    assert counter.state["calls"].item() == 0
    assert counter(ONES).tolist() == [1, 1, 1, 1]
    assert result.tolist() == [1, 1, 1, 1]


def test_executables_of_one_file_have_state_of_their_own(compiled: Compiled) -> None:
    first, second = (runtime.load(compiled("counter")) for _ in range(2))
    first(ONES)
    assert second(ONES).tolist() == [1, 1, 1, 1]


def test_module_without_state_has_none(compiled: Compiled) -> None:
    exe = runtime.load(compiled("add_one"))
    exe.reset_state()
    assert dict(exe.state) == {}
    assert exe(ONES).tolist() == [2, 2, 2, 2]


def test_unknown_state_is_refused_with_the_known_names(counter: runtime.Executable) -> None:
    with pytest.raises(KeyError, match="no state 'sum'; there is: total, odd, calls"):
        counter.state["sum"] = ONES
    with pytest.raises(KeyError, match="no state 'sum'"):
        _ = counter.state["sum"]
    assert "sum" not in counter.state


def test_state_cannot_be_removed(counter: runtime.Executable) -> None:
    with pytest.raises(TypeError, match=r"reset_state\(\) restores the initial values"):
        del counter.state["total"]


@pytest.mark.parametrize("value", [torch.ones(5), torch.ones(4, dtype=torch.float64), [1, 2]])
def test_state_of_another_type_or_shape_is_refused(counter: runtime.Executable, value: Any) -> None:
    with pytest.raises(SignatureError, match="argument value"):
        counter.state["total"] = value
    assert counter.state["total"].tolist() == [0, 0, 0, 0]


# Threads


def in_threads(work: Callable[[int], Any]) -> list[Any]:
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(work, range(THREADS)))


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_calls_of_eight_threads_give_what_one_gives(compiled: Compiled, library: str) -> None:
    exe = runtime.load(compiled("add_rows"))

    def work(thread: int) -> bool:
        generator = torch.Generator().manual_seed(thread)
        for count in range(300):
            x, y = torch.rand(2, 1 + count % 8, 4, generator=generator)
            expected = x + y
            if library == "torch":
                right = torch.equal(exe(x, y), expected)
            else:
                right = np.array_equal(exe(x.numpy(), y.numpy()), expected.numpy())
            if not right:
                return False
        return True

    assert all(in_threads(work))


def test_calls_that_change_state_come_one_after_the_other(counter: runtime.Executable) -> None:
    totals = in_threads(lambda _: [counter(ONES)[0].item() for _ in range(200)])
    assert sorted(chain.from_iterable(totals)) == list(range(1, THREADS * 200 + 1))
    assert counter.state["calls"].item() == THREADS * 200


def test_state_is_whole_whenever_it_is_read(counter: runtime.Executable) -> None:
    def work(thread: int) -> bool:
        if thread % 2:
            for _ in range(150):
                counter(ONES)
            return True
        return all(len(set(counter.state["total"].tolist())) == 1 for _ in range(150))

    assert all(in_threads(work))


def test_threads_may_load_one_file(compiled: Compiled) -> None:
    path = compiled("add_one")
    results = in_threads(lambda i: [runtime.load(path)(ONES * i).tolist() for _ in range(10)])
    assert results == [[[i + 1.0] * 4] * 10 for i in range(THREADS)]
