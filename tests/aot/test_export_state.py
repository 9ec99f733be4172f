"""Buffers that a module changes are state: kept between calls, put back, read and written."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

from pelton import aot, runtime

from ..programs import assert_same, compiled, through_files

X = torch.randn(2, 4)


class Counter(nn.Module):
    """Counts calls and sums inputs, in buffers of several element types and sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("flags", torch.tensor([True, False]))
        self.register_buffer("large", torch.ones(2000), persistent=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        self.calls += 1
        self.total.add_(x.sum(0))
        self.flags.logical_not_()
        self.large.mul_(1.5)
        return self.calls, self.total * 2, self.flags, self.large.sum()


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counter")
    out = aot.export(Counter(), args=(X,), dynamic_shapes=({0: "batch"},))
    through_files(out, folder)
    return folder / "module.vmfb"


def test_state_is_kept_between_calls_as_in_eager(counter: Path) -> None:
    exe, model = runtime.load(counter), Counter()
    for rows in (1, 3, 2):
        x = torch.randn(rows, 4)
        assert_same(exe(x), model(x))


def test_reset_puts_the_initial_values_back(counter: Path) -> None:
    exe = runtime.load(counter)
    first = exe(X)
    exe(X)
    exe.reset_state()
    assert_same(exe(X), first)


def test_state_is_read_and_written_by_its_name_in_the_module(counter: Path) -> None:
    exe = runtime.load(counter)
    exe(X)
    assert set(exe.state) == {"calls", "total", "flags", "large"}
    assert exe.state["calls"].item() == 1
    assert exe.state["flags"].tolist() == [False, True]
    exe.state["calls"] = torch.tensor(40)
    exe.state["flags"] = torch.tensor([True, True])
    calls, _, flags, _ = exe(X)
    assert calls.item() == 41
    assert flags.tolist() == [False, False]


def test_two_loads_have_states_of_their_own(counter: Path) -> None:
    first, second = runtime.load(counter), runtime.load(counter)
    first(X)
    assert second.state["calls"].item() == 0


def test_results_are_not_changed_by_later_calls(counter: Path) -> None:
    exe = runtime.load(counter)
    kept = exe(X)
    copies = copy.deepcopy(kept)
    exe(X)
    assert_same(kept, copies)


def test_the_signature_names_the_state_that_a_call_changes(counter: Path) -> None:
    signature = runtime.load(counter).functions["main"].signature
    assert set(signature.mutates) == {"calls", "total", "flags", "large"}


class Keep(nn.Module):
    """Only writes: the new value is an input as it came."""

    def __init__(self, size: int = 4) -> None:
        super().__init__()
        self.register_buffer("kept", torch.zeros(size))

    def forward(self, x: torch.Tensor) -> None:
        self.kept.copy_(x)


def test_a_buffer_that_is_only_written_keeps_the_input(tmp_path: Path) -> None:
    exe = compiled(tmp_path, Keep(), (torch.zeros(4),))
    given = torch.arange(4.0)
    assert exe(given) is None
    given.fill_(9)  # the state is a copy: the caller may do with its tensor what it likes
    assert_same(exe.state["kept"], torch.arange(4.0))


class Swap(nn.Module):
    """Two buffers exchange their values, and the old ones are returned."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.zeros(2))
        self.register_buffer("b", torch.ones(2))

    def forward(self) -> tuple[torch.Tensor, torch.Tensor]:
        old_a, old_b = self.a.clone(), self.b.clone()
        self.a.copy_(old_b)
        self.b.copy_(old_a)
        return old_a, old_b


def test_buffers_that_take_each_others_values_swap(tmp_path: Path) -> None:
    exe, model = compiled(tmp_path, Swap()), Swap()
    for _ in range(3):
        assert_same(exe(), model())


class Cache(nn.Module):
    """A cache written at a position, as in token generation."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(8, 3))

    def forward(self, position: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        self.cache.index_copy_(0, position, row)
        return self.cache.sum(0)


def test_a_cache_written_at_positions_equals_eager(tmp_path: Path) -> None:
    exe, model = compiled(tmp_path, Cache(), (torch.tensor([0]), torch.randn(1, 3))), Cache()
    for step in (0, 1, 2, 1):
        row = torch.randn(1, 3)
        assert_same(exe(torch.tensor([step]), row), model(torch.tensor([step]), row))


def test_batch_norm_in_training_updates_its_statistics(tmp_path: Path) -> None:
    model = nn.BatchNorm1d(4)
    with pytest.warns(UserWarning, match="exporting in training mode"):
        out = aot.export(model, args=(torch.randn(8, 4),))
    exe = through_files(out, tmp_path)
    reference = copy.deepcopy(model)
    for _ in range(2):
        x = torch.randn(8, 4)
        assert_same(exe(x), reference(x), atol=1e-4)
    assert_same(exe.state["running_mean"], reference.running_mean)


def test_exporting_changes_no_buffer_of_the_model() -> None:
    model = Counter()
    aot.export(model, args=(X,))
    assert model.calls.item() == 0
    assert_same(model.total, torch.zeros(4))


class Follow(nn.Module):
    """One new value becomes that of two buffers; later changes of one leave the other."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.zeros(8, 3))
        self.register_buffer("b", torch.zeros(8, 3))

    def forward(self, position: torch.Tensor, row: torch.Tensor) -> torch.Tensor:
        self.b.index_copy_(0, position, row)
        self.a.copy_(self.b)
        return self.a.sum()


@pytest.mark.parametrize("level", [1, 3])
def test_two_buffers_that_take_one_value_stay_two(level: int, tmp_path: Path) -> None:
    args = (torch.tensor([0]), torch.randn(1, 3))
    exe = through_files(aot.export(Follow(), args=args), tmp_path, optimization_level=level)
    model = Follow()
    for step in (0, 3, 5, 3):
        args = (torch.tensor([step]), torch.randn(1, 3))
        assert_same(exe(*args), model(*args), atol=1e-4)
        assert_same(dict(exe.state), dict(model.named_buffers()))


class Written(nn.Module):
    """Writes to a part of its buffer, which compiled code does in place."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(6, 4))
        self.register_buffer("small", torch.ones(3, dtype=torch.bfloat16))
        self.register_buffer("flags", torch.tensor([True, False]))

    def forward(self, places: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        self.cache.index_copy_(0, places, rows)
        self.small.mul_(2)
        self.flags.logical_not_()
        return self.cache.sum(0) + self.small.sum() + self.flags[0]


@pytest.mark.parametrize("source", ["file", "tensors"])
def test_external_state_is_a_copy_of_what_the_archive_has(source: str, tmp_path: Path) -> None:
    model = Written()
    places, rows = torch.tensor([1, 4]), torch.ones(2, 4)
    out = aot.export(model, args=(places, rows), external_parameters=True)
    out.save_parameters(tmp_path / "m.irpa")
    given = {name: tensor.clone() for name, tensor in model.named_buffers()}
    before = copy.deepcopy(given)
    parameters = tmp_path / "m.irpa" if source == "file" else given
    executable = through_files(out, tmp_path, parameters=parameters)
    for _ in range(2):
        assert_same(executable(places, rows), model(places, rows))
    assert_same(given, before)
    executable.reset_state()
    assert_same(dict(executable.state.items()), before)
