"""Programs that share state, and procedural modules, whose MLIR `ir_digest.py` compares.

Lines of this file are part of compiled artifacts, so digests of compiles change when it is edited:
where it must be edited, run `ir_digest.py --save` on the code before the refactoring.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pelton import aot

FLOAT, I64 = torch.float32, torch.int64
ROWS = aot.NamedDimension("rows", 2, 4, 16)
X = torch.linspace(-1, 1, 12).reshape(3, 4)


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    """Return a module with weights that are the same in each process, for inference."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().eval()


class Cache(nn.Module):
    """Buffers of several types that each call changes, in part and whole."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(16, 4))
        self.register_buffer("used", torch.zeros((), dtype=I64))
        self.register_buffer("seen", torch.zeros(4, dtype=torch.bool))
        self.register_buffer("narrow", torch.ones(4, dtype=torch.float16), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        places = self.used + torch.arange(x.shape[0])
        self.keys.index_copy_(0, places, x)
        self.used.add_(x.shape[0])
        self.seen.logical_or_((x > 0).any(0))
        self.narrow.mul_(2)
        return torch.where(self.seen, self.keys.sum(0), self.narrow.float())


# Several programs of one module


def shared_programs() -> aot.FxProgramsBuilder:
    programs = aot.FxProgramsBuilder(seeded(Cache))
    programs.export_program(lambda module: module.used * 1, name="length", strict=False)
    programs.export_program(
        lambda module, x: module(x),
        args=(aot.InputInfo((ROWS, 4), FLOAT),),
        name="add",
        strict=False,
    )
    programs.export_program(
        lambda module, x, scale=2.0: {"y": module(x) * scale},
        args=(X[:1],),
        name="one",
        strict=False,
    )
    return programs


# Procedural modules

NET = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))).requires_grad_(False)
TIED = torch.arange(4.0)


class Holder(aot.CompiledModule):
    params = aot.export_parameters(NET)
    cache = aot.export_global(aot.AbstractTensor(2, 4), mutable=True)
    scratch = aot.export_global(aot.AbstractTensor(2), mutable=True, uninitialized=True)
    mask = aot.export_global(torch.tensor([True, False, True]), mutable=True)
    half = aot.export_global(aot.AbstractTensor(2, dtype=torch.bfloat16), mutable=True)
    count = aot.export_global(3, mutable=True)
    flag = aot.export_global(aot.AbstractBool, mutable=True)
    tree = aot.export_global_tree({"a": torch.zeros(2), "b": [torch.ones(3), 4]}, mutable=True)
    tied = aot.export_global_tree([TIED, TIED])
    archived = aot.export_global(aot.AbstractTensor(2), external=True, external_scope="net")
    attributes = aot.export_global(X, attrs=aot.GlobalAttributes(noinline=True, mutable=True))

    def read(self):
        return dict(self.params.items()), self.tied, self.archived

    def store(self, x=aot.AbstractTensor(2), at=aot.AbstractIndex, n=aot.AbstractI64):
        self.cache[:, at] = x
        self.mask[1] = True
        self.count += n
        self.flag = self.count > 4
        self.tree = {"b": (self.tree["b"][0] * 2, 7), "a": self.tree["a"] + 1}
        self.scratch = x
        self.half = x.to(torch.bfloat16)
        return self.count, self.flag, self.attributes

    def borrow(self):
        self.scratch = self.tree["a"]
        return self.scratch


class Flow(aot.CompiledModule):
    total = aot.export_global(aot.AbstractTensor(4), mutable=True)
    count = aot.export_global(aot.AbstractI64, mutable=True)

    def branch(self, p=aot.AbstractBool, x=aot.AbstractTensor(None)):
        def then(x):
            self.count += 1
            return {"x": x + 1, "n": 1, "part": x[:2]}

        return aot.cond(p, then, lambda x: {"x": x - 1, "n": 2, "part": x}, x)

    def sums(self, n=aot.AbstractI64, x=aot.AbstractTensor(4)):
        def body(i, carry):
            self.total = self.total + carry["x"]
            return {"x": carry["x"] * 2, "n": carry["n"] + i}

        return aot.for_loop(n, body, {"x": x, "n": 0}), self.total

    def halvings(self, x=aot.AbstractTensor(), limit=aot.AbstractI32):
        return aot.while_loop(
            lambda c: (c[0] >= 1).item() & (c[1] < limit), lambda c: (c[0] / 2, c[1] + 1), (x, 0)
        )

    def nested(self, n=aot.AbstractIndex, x=aot.AbstractTensor(2, 3)):
        def outer(i, x):
            return aot.for_loop(i, lambda j, x: aot.cond(j == i, lambda: x + 1, lambda: x * 2), x)

        return aot.for_loop(n, outer, x)


class Emitted(aot.CompiledModule):
    def flow(self, x=aot.AbstractTensor(None, 4), n=aot.AbstractIndex, v=aot.AbstractF32):
        e = aot.IREE
        e.tensor_trace("title", x, n)
        wide = e.tensor_splat(n, 4, value=v, dtype=FLOAT)
        return (
            e.tensor_dim(x, 0), e.tensor_empty(n, 3, dtype=torch.int8), wide,
            e.tensor_reshape(x, n, 2, -1), e.tensor_slice(x, (n, 1), (1, 2)),
            e.tensor_update(x, wide, 0, 0),
        )  # fmt: skip

    def numbers(self, i=aot.AbstractI32, j=aot.AbstractI64, x=aot.AbstractF32, y=aot.AbstractF64):
        return [
            i + 1, 10 - i, i * j, j // 3, 7 // i, j % 3, -i, abs(j), ~i, i << 2, i ^ 5, x**2, 3 / x,
            x // 0.3, x + y, i / 2, i * x, i == 3, i < x, (i > 9) | ~(x < 0), i.to(torch.float64),
            y.to(I64), x.clamp(0, 1),
        ]  # fmt: skip

    def reads(self, x=aot.AbstractTensor(None, 4), i=aot.AbstractI64, n=aot.AbstractI64):
        return [
            x[i], x[:, i], x[-1], x[1:3], x[:, ::2], x[..., None, 0], x[i : i + 2], x[i:n], x[-2:],
            x[:, [0, 2]], x @ x.T, x < 1, x.sum(dim=1), *x.shape, x.numel(),
        ]  # fmt: skip

    def writes(self, x=aot.AbstractTensor(None, 4), v=aot.AbstractTensor(4), i=aot.AbstractI64):
        a = x * 1
        a[0, i] = 7
        a[:, 1:3] = 0.5
        a[i] = v
        a[i + 1][2] = 9
        a[i:] = -1
        a += 1
        return a


class Calls(aot.CompiledModule):
    net = NET
    cache = aot.export_global(aot.AbstractTensor(4, 2), mutable=True)
    listed = torch.export.export(nn.Linear(4, 2).requires_grad_(False), (X,))
    programs = shared_programs()

    def twice(self, x=aot.AbstractTensor(2, 4), n=aot.AbstractI64):
        return self.step(x, 2.0), self.step(scale=2.0, x=x), self.scaled(x, n), self.net(x)

    def in_place(self, x=aot.AbstractTensor(2), rows=aot.AbstractTensor(3, 4)):
        self.put_row(self.cache, x, 1)
        return self.cache, self.listed(rows)

    @aot.jittable
    def step(x, scale):
        return x * scale + 1

    @aot.jittable
    def scaled(x, n):
        return x[:n] * n

    @aot.jittable
    def put_row(cache, x, row):
        cache[row] = x


PROGRAMS: dict[str, Callable[[], aot.ExportOutput]] = {
    "fx_programs": lambda: aot.export(shared_programs()),
    "fx_programs_external": lambda: aot.export(shared_programs(), external_parameters=True),
    "procedural_globals": lambda: aot.export(Holder),
    "procedural_flow": lambda: aot.export(Flow),
    "procedural_emitter": lambda: aot.export(Emitted),
    "procedural_calls": lambda: aot.export(Calls),
}
"""What exports each program, by name."""
