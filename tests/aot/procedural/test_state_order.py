"""State is right whatever the order of procedures, and globals never share memory."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from pelton import aot, runtime

from ...programs import assert_same, through_files

K = torch.full((2, 2), 9.0)


class Buffer(nn.Module):
    """A small buffer that one method reads and others write."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("value", torch.zeros(3))

    def get(self) -> torch.Tensor:
        return self.value * 1

    def put(self, x: torch.Tensor) -> None:
        self.value.copy_(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.value += x
        return self.value * 2


BUFFER = Buffer()


class Ordered(aot.CompiledModule):
    held = BUFFER
    read = aot.jittable(BUFFER.get)

    def before(self):
        return self.read()

    def direct(self, x=aot.AbstractTensor(3)):
        return x + BUFFER.value

    def put(self, x=aot.AbstractTensor(3)):
        self.held.put(x)

    def add(self, x=aot.AbstractTensor(3)):
        return self.held(x)

    def after(self):
        return self.held.get()


@pytest.fixture(scope="module")
def ordered(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    return through_files(aot.export(Ordered), tmp_path_factory.mktemp("ordered"))


def test_readers_before_writers_see_what_is_written(ordered: runtime.Executable) -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    assert_same(ordered.before(), torch.zeros(3))
    ordered.put(x)
    assert_same([ordered.before(), ordered.direct(x), ordered.after()], [x, 2 * x, x])
    assert_same(ordered.add(x), 4 * x)
    assert_same(ordered.before(), 2 * x)
    assert len(ordered.state) == 1
    assert ordered.functions["add"].signature.mutates == tuple(ordered.state)
    assert ordered.functions["before"].signature.mutates == ()


class Shared(aot.CompiledModule):
    """Globals that a compiler might keep in one buffer."""

    a = aot.export_global(aot.AbstractTensor(2, 4), mutable=True)
    b = aot.export_global(aot.AbstractTensor(2, 4), mutable=True)
    c = aot.export_global(torch.ones(2, 4), mutable=True)

    def update_a(self, k=aot.AbstractTensor(2, 2)):
        self.a[:, 1:3] = k

    def copy_c_to_a(self):
        self.a = self.c

    def both(self, x=aot.AbstractTensor(2, 4)):
        self.a = x
        self.b = x

    def changed_c_to_a(self, k=aot.AbstractTensor(2, 2)):
        self.a = aot.IREE.tensor_update(self.c, k, 0, 1)

    def view_of_c_to_a(self):
        self.a = self.same_elements(self.c)

    def swap(self):
        kept = self.a[...]
        self.a = self.c
        self.c = kept

    def before_and_after(self, k=aot.AbstractTensor(2, 2)):
        before = self.c[:, :]
        self.c[:, 1:3] = k
        return before, self.c

    @aot.jittable
    def same_elements(x):
        return x.reshape(4, 2).reshape(2, 4)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    return through_files(aot.export(Shared), tmp_path_factory.mktemp("shared"))


def sums(exe: runtime.Executable) -> list[float]:
    return [exe.state[name].sum().item() for name in "abc"]


def test_equal_zeros_are_two_buffers(shared: runtime.Executable) -> None:
    shared.reset_state()
    shared.update_a(K)
    assert sums(shared) == [36, 0, 8]


@pytest.mark.parametrize("copy", ["copy_c_to_a", "view_of_c_to_a", "swap"])
def test_a_copied_global_is_a_copy(shared: runtime.Executable, copy: str) -> None:
    shared.reset_state()
    getattr(shared, copy)()
    other = 0 if copy == "swap" else 8
    assert sums(shared) == [8, 0, other]
    shared.update_a(K)
    assert sums(shared) == [40, 0, other]


def test_an_argument_stored_twice_is_two_buffers(shared: runtime.Executable) -> None:
    shared.reset_state()
    x = torch.zeros(2, 4)
    shared.both(x)
    shared.update_a(K)
    assert sums(shared) == [36, 0, 8]
    assert x.sum() == 0


def test_an_update_of_another_global_leaves_it(shared: runtime.Executable) -> None:
    shared.reset_state()
    shared.changed_c_to_a(K)
    assert sums(shared) == [40, 0, 8]


def test_a_value_taken_before_a_store_stays(shared: runtime.Executable) -> None:
    shared.reset_state()
    before, after = shared.before_and_after(K)
    assert (before.sum().item(), after.sum().item()) == (8, 40)


def test_two_mutable_globals_of_one_tensor_are_two(tmp_path: Path) -> None:
    tensor = torch.zeros(2)

    class Two(aot.CompiledModule):
        a = aot.export_global(tensor, mutable=True)
        b = aot.export_global(tensor, mutable=True)

        def put(self, x=aot.AbstractTensor(2)):
            self.a = x
            return self.b

    exe = through_files(aot.export(Two), tmp_path)
    assert_same(exe.put(torch.ones(2)), torch.zeros(2))


def test_tied_parameters_are_one_global_under_both_names(tmp_path: Path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            return self.head(self.embed(tokens))

    net = Tied().requires_grad_(False)

    class Holder(aot.CompiledModule):
        params = aot.export_parameters(net)

        def run(self, tokens=aot.AbstractTensor(4, dtype=torch.int64)):
            return self.step(self.params, tokens), self.params["head.weight"]

        @aot.jittable
        def step(params, tokens):
            return torch.func.functional_call(net, params, (tokens,))

    out = aot.export(Holder)
    assert str(out.mlir_module).count("util.global private") == 1
    tokens = torch.tensor([0, 1, 2, 4])
    assert_same(through_files(out, tmp_path).run(tokens), (net(tokens), net.embed.weight))
