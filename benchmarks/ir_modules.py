"""Networks, containers, sizes, branches and custom operators that `ir_digest.py` compares.

Lines of this file are part of compiled artifacts, so digests of compiles change when it is edited:
where it must be edited, run `ir_digest.py --save` on the code before the refactoring.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pelton import aot
from pelton.aot.custom_ops import custom_op, trace_tensor, transfer_to_device

FLOAT, I64 = torch.float32, torch.int64
ROWS = aot.NamedDimension("rows", 2, 4, 16)
X = torch.linspace(-1, 1, 12).reshape(3, 4)
Export = Callable[[], aot.ExportOutput]


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    """Return a module with weights that are the same in each process, for inference."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make().eval()


def rows(*shape: int, dtype: torch.dtype = FLOAT) -> aot.InputInfo:
    return aot.InputInfo((ROWS, *shape), dtype)


# Networks


class ConvNet(nn.Module):
    """Convolutions with batch norm, a residual, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.wide = nn.Conv2d(8, 8, 3, padding=1, groups=2)
        self.norm = nn.GroupNorm(2, 8)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.stem(x), 2)
        x = x + F.silu(self.norm(self.wide(x)))
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Block(nn.Module):
    """A pre-norm transformer block with causal attention."""

    def __init__(self, width: int = 16, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        heads = (batch, length, self.heads, width // self.heads)
        q, k, v = (part.view(heads).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(x)))


class Recurrent(nn.Module):
    """An LSTM, a GRU and a plain recurrent network after each other."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(4, 6, bidirectional=True, batch_first=True)
        self.gru, self.rnn = nn.GRU(12, 5, 2, batch_first=True), nn.RNN(5, 3, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Any]:
        hidden, state = self.lstm(x)
        return self.rnn(self.gru(hidden)[0])[0], state


class Varied(nn.Module):
    """Tied, strided, scalar, bool and bfloat16 weights, a mutated buffer, one that is not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("mask", torch.tensor([True, False, True, True]))
        self.register_buffer("gain", torch.tensor(2.5))
        self.register_buffer("coarse", torch.randn(4).bfloat16())
        self.register_buffer("strided", torch.randn(4, 4).t())
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("scratch", torch.randn(4), persistent=False)
        self.unused = nn.Linear(2, 2)

    def forward(self, tokens: Tensor) -> Tensor:
        self.count.add_(1)
        hidden = self.body(self.embed(tokens)) * self.gain + self.coarse.float()
        hidden = torch.where(self.mask, hidden, 0.0) @ self.strided + self.scratch
        return self.head(hidden) + self.count.sum()


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


class Staged(nn.Module):
    """Two layers, the second and its count of calls on device 1."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
        self.register_buffer("calls", torch.zeros(2))
        for tensor in (*self.second.parameters(), self.calls):
            aot.DeviceTensorTrait(1).set(tensor)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        hidden = transfer_to_device(torch.relu(self.first(x)), 1)
        self.calls.add_(1)
        return self.second(hidden) * y + self.calls


def every_dtype() -> aot.ExportOutput:
    names = """bool int8 uint8 int16 int32 int64 float16 bfloat16 float32
        float64 complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz"""
    dtypes = [getattr(torch, name) for name in names.split()]
    args = tuple(aot.InputInfo((ROWS, 2), dtype) for dtype in dtypes)
    return aot.export(lambda *all: tuple(x.clone() for x in all), args=args)


def network(make: Callable[[], nn.Module], *args: Any, **options: Any) -> Export:
    return lambda: aot.export(seeded(make), args=args, **options)


def trained() -> aot.ExportOutput:
    return aot.export(seeded(nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.1)).train), args=(X,))


def on_meta() -> aot.ExportOutput:
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
    return aot.export(model, args=(X,), external_parameters="weights")


def externalised() -> aot.ExportOutput:
    model = seeded(Varied)
    aot.externalize_module_parameters(model.body, external_scope="body", prefix="b.")
    return aot.export(model, args=(torch.tensor([1, 2, 3]),))


# Arguments, sizes, kinds of programs


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


class Named(NamedTuple):
    first: Any
    second: Any


def containers() -> aot.ExportOutput:
    def program(tree: Any, pair: Pair, *rest: Tensor, scale: float = 2.0, extra: Any = None) -> Any:
        total = tree["a"] + pair.left * scale + sum(rest)
        return {
            "total": total,
            "named": Named(pair.right, None),
            "none": extra,
            "kind": tree["b"][1],
        }

    tree = {"a": rows(4), "b": [X, "text"]}
    return aot.export(
        program, args=(tree, Pair(rows(4), X), rows(4), rows(4)), kwargs={"scale": 3.0}
    )


def relations() -> aot.ExportOutput:
    n = torch.export.Dim("n", min=2, max=32)
    shapes = {"x": {0: n}, "y": {0: 2 * n}, "z": {0: n + 1}}
    return aot.export(
        lambda x, y, z: (torch.cat([x, y]), z[1:] + x, y.reshape(-1, 2, 4).sum(1)),
        args=(torch.ones(3, 4), torch.ones(6, 4), torch.ones(4, 4)), dynamic_shapes=shapes,
    )  # fmt: skip


def automatic() -> aot.ExportOutput:
    auto = torch.export.Dim.AUTO
    shapes = ({0: auto, 1: auto}, {0: auto, 1: auto})
    return aot.export(lambda x, y: (x @ y, x.reshape(-1)), args=(X, X.T), dynamic_shapes=shapes)


def scalar_sizes() -> aot.ExportOutput:
    size = aot.DimensionInputInfo(value_bounds=(1, 2, 4))
    x = aot.InputInfo((3, (2, 4, 6)), FLOAT)
    return aot.export(lambda x, s: (torch.reshape(x, (-1, s)), x * s), args=(x, size))


def profiled() -> aot.ExportOutput:
    length = aot.NamedDimension("length", 1, 8, 64)
    profiles = {"prompt": {"length": (16, 32, 64)}, "token": {"length": 1}}
    x = aot.InputInfo((length, 4), FLOAT)
    return aot.export(seeded(lambda: nn.Linear(4, 4)), args=(x,), profiles=profiles)


def without_expressions() -> aot.ExportOutput:
    return aot.export(
        lambda x: torch.cat([x, x[1:]]), args=(rows(4),), import_symbolic_shape_expressions=False,
        module_name="bare", function_name="entry",
    )  # fmt: skip


def exported_program() -> aot.ExportOutput:
    shapes = ({0: torch.export.Dim("rows", min=2, max=9)},)
    program = torch.export.export(seeded(Varied), (torch.tensor([1, 2, 3]),), dynamic_shapes=shapes)
    return aot.export(program, external_parameters=True)


def strict() -> aot.ExportOutput:
    return aot.export(
        seeded(Block), args=(aot.InputInfo((2, ROWS, 16), FLOAT),), strict_export=True
    )


def decomposed() -> aot.ExportOutput:
    return aot.export(
        lambda x: F.silu(x) + F.gelu(x), args=(X,), decompositions=aot.current_aot_decompositions()
    )


# Branches and loops of torch


def branches(x: Tensor) -> Any:
    def inner(x: Tensor) -> Tensor:
        return torch.cond(x.amax() > 3.5, lambda x: x * 3, lambda x: x * 5, (x,))

    return torch.cond(x.sum() > 0, inner, lambda x: x - 1, (x,))


def loop(x: Tensor) -> Any:
    limit = x.abs().amax(1).sum()
    return torch.while_loop(
        lambda n, x: n < limit, lambda n, x: (n + 1, x * 0.5 + limit), (torch.tensor(0), x)
    )


def scans(x: Tensor) -> Any:
    from torch._higher_order_ops.map import map as torch_map
    from torch._higher_order_ops.scan import scan

    last = scan(lambda state, x: (state * 0.5 + x, state * x), torch.zeros(4), x)
    return last, torch_map(lambda row, other: (row + other).cumsum(0), x, x.sum(0))


# Custom operators

ADDED = custom_op(
    "digest::added(Tensor x, Tensor y, float scale=1.0) -> Tensor",
    shapes="n k, k -> n k",
    body="""
        %factor = arith.truncf %scale : f64 to ${x.element}
        %empty = tensor.empty(${result.sizes}) : $result
        %0 = linalg.generic {
            indexing_maps = [${x.map}, ${y.map}, ${result.map}], iterator_types = $iterators
        } ins(%x, %y : $x, $y) outs(%empty : $result) {
        ^bb0(%a: ${x.element}, %b: ${y.element}, %out: ${result.element}):
          %c = arith.mulf %a, %factor : ${x.element}
          %d = arith.addf %c, %b : ${x.element}
          linalg.yield %d : ${x.element}
        } -> $result
        return %0 : $result
    """,
    eager=lambda x, y, scale=1.0: x * scale + y,
)


def custom(phase: str) -> aot.ExportOutput:
    def program(x: Tensor, y: Tensor) -> Tensor:
        trace_tensor("sum", x.sum())
        return ADDED(ADDED(x, y, 2.0), x[0])

    out = aot.export(program, args=(rows(4), aot.InputInfo((4,), FLOAT)))
    out.import_to(phase)
    return out


TOKENS = torch.tensor([1, 2, 3])
IMAGE = rows(3, 16, 16)
PROGRAMS: dict[str, Export] = {
    "linear": network(lambda: nn.Linear(4, 3), rows(4)),
    "perceptron": network(lambda: nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 3)), X),
    "conv_net": network(ConvNet, IMAGE),
    "conv_net_static": network(ConvNet, torch.ones(2, 3, 16, 16)),
    "block": network(Block, aot.InputInfo((2, ROWS, 16), FLOAT)),
    "block_strict": strict,
    "recurrent": network(Recurrent, torch.ones(2, 3, 4)),
    "encoder": network(lambda: nn.TransformerEncoderLayer(16, 2, 32), torch.ones(5, 2, 16)),
    "embedding_bag": network(lambda: nn.EmbeddingBag(9, 4), torch.ones(2, 3, dtype=I64)),
    "varied": network(Varied, TOKENS),
    "varied_external": network(Varied, TOKENS, external_parameters=True),
    "varied_picked": network(
        Varied, TOKENS, external_parameters=lambda key: key.startswith("body")
    ),
    "externalised": externalised,
    "meta": on_meta,
    "cache": network(Cache, rows(4)),
    "training": trained,
    "devices": network(
        Staged, rows(4), rows(2), arg_device={0: aot.DeviceAffinity(0), 1: aot.DeviceAffinity(1)}
    ),
    "every_dtype": every_dtype,
    "containers": containers,
    "relations": relations,
    "automatic_sizes": automatic,
    "scalar_sizes": scalar_sizes,
    "profiles": profiled,
    "without_expressions": without_expressions,
    "exported_program": exported_program,
    "decompositions": decomposed,
    "cond": lambda: aot.export(branches, args=(rows(4),)),
    "while_loop": lambda: aot.export(loop, args=(rows(4),)),
    "scan_map": lambda: aot.export(scans, args=(rows(4),)),
    "custom_expanded": lambda: custom("import"),
    "custom_lowered": lambda: custom("full"),
}
"""What exports each program, by name."""
