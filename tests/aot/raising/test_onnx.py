"""ONNX models of exported functions: eager, the raised graph and onnxruntime agree."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pelton import aot, runtime
from pelton.aot.raising import onnx
from pelton.aot.raising.fx import open_source
from tests.aot.raising.oracles import OnnxRun, assert_all_equal
from tests.aot.weights import TOKENS, eager, varied
from tests.programs import assert_same

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

BATCH = aot.NamedDimension("batch", 1, 4, 8)
LENGTH = aot.NamedDimension("length", 1, 5, 16)


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3, stride=2, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.head = nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.max_pool2d(F.relu(self.norm(self.conv(x))), 2)
        return self.head(x.mean((2, 3)))


class Attention(nn.Module):
    def __init__(self, width: int = 16, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        heads = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))


class Net(nn.Module):
    """One layer of a GPT over one new token and the cached keys and values of all before."""

    def __init__(self, width: int = 8, room: int = 6, words: int = 11) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(words, width), nn.Linear(width, words)
        self.query, self.kv = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.places = nn.Embedding(room, width)
        self.room = room

    def step(
        self, token: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, at: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        x = self.embed(token) + self.places(at)
        key, value = self.kv(x).chunk(2, -1)
        here = (torch.arange(self.room) == at)[:, None]
        keys, values = torch.where(here, key, keys), torch.where(here, value, values)
        mask = torch.arange(self.room) <= at
        mixed = F.scaled_dot_product_attention(self.query(x)[None], keys[None], values[None], mask)
        return self.head(x + mixed[0]), keys, values


class CachedModule(nn.Module):
    """The same with its cache in buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.net = Net()
        self.register_buffer("keys", torch.zeros(6, 8))
        self.register_buffer("values", torch.zeros(6, 8))
        self.register_buffer("at", torch.tensor(0))

    def forward(self, token: torch.Tensor) -> torch.Tensor:
        logits, keys, values = self.net.step(token, self.keys, self.values, self.at)
        self.keys.copy_(keys)
        self.values.copy_(values)
        self.at.add_(1)
        return logits


class Gathering(nn.Module):
    def forward(self, x: torch.Tensor, flags: torch.Tensor) -> dict[str, torch.Tensor]:
        order = x.argsort(dim=-1, descending=True)
        return {
            "any": (flags & (x > 2)).any(-1),
            "order": order,
            "picked": torch.where(flags, x // 3, -x % 5),
            "sums": x.cumsum(-1),
            "narrow": x.to(torch.int32).bitwise_and(6),
        }


def test_a_cnn_with_a_dynamic_batch(tmp_path: Path) -> None:
    model = Cnn().eval()
    out = aot.export(model, args=[aot.InputInfo((BATCH, 3, 16, 16), torch.float32)])
    assert_all_equal(out, tmp_path, model, *[[torch.randn(n, 3, 16, 16)] for n in (1, 4, 8)])


def test_attention_with_two_dynamic_sizes_stays_one_operator(tmp_path: Path) -> None:
    model = Attention().eval()
    out = aot.export(model, args=[aot.InputInfo((BATCH, LENGTH, 16), torch.float32)])
    shapes = ((1, 1), (1, 5), (4, 5), (8, 16), (3, 1))
    assert_all_equal(out, tmp_path, model, *[[torch.randn(b, n, 16)] for b, n in shapes])
    program = out.to_onnx(tmp_path / "model.onnx")
    assert "Attention" in [node.op_type for node in program.model.graph]


@pytest.mark.parametrize(
    ("kind", "dynamic"),
    [
        ("queries", True),
        ("all", False),
        pytest.param("all", True, marks=pytest.mark.deep),
        pytest.param("keys", False, marks=pytest.mark.deep),
        pytest.param("keys", True, marks=pytest.mark.deep),
        pytest.param("queries", False, marks=pytest.mark.deep),
    ],
)
def test_masks_with_one_row_or_column_for_all(tmp_path: Path, dynamic: bool, kind: str) -> None:
    shape = {"keys": (1, 5), "queries": (5, 1), "all": (1, 1)}[kind]

    def attend(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        seen = mask[:, None] if kind != "all" else mask[:, None, :1, :1]
        once = F.scaled_dot_product_attention(x, x, x, attn_mask=seen)
        return F.scaled_dot_product_attention(once, x, x, attn_mask=seen)

    batch, length = (BATCH, LENGTH) if dynamic else (2, 5)
    sizes = [length if size == 5 else size for size in shape]
    specs = [
        aot.InputInfo((batch, 2, length, 8), torch.float32),
        aot.InputInfo((batch, *sizes), torch.bool),
    ]
    out = aot.export(attend, args=specs)
    calls = []
    for b, n in ((2, 5), (1, 2), (8, 16)) if dynamic else ((2, 5),):
        mask = torch.rand([b, *(n if size == 5 else size for size in shape)]) > 0.4
        mask[:, 0, 0] = True
        calls.append([torch.randn(b, 2, n, 8), mask])
    assert_all_equal(out, tmp_path, lambda x, mask: attend(x, mask).nan_to_num(0.0), *calls)
    kinds = [node.op_type for node in out.to_onnx(tmp_path / "model.onnx").model.graph]
    assert kinds.count("Attention") == 2
    assert kinds.count("Expand") == 1


def test_state_is_fed_back_through_five_decode_steps(tmp_path: Path) -> None:
    model = CachedModule().eval()
    out = aot.export(model, args=[torch.tensor([3])])
    calls = [[torch.tensor([word])] for word in (3, 7, 1, 10, 4)]
    assert_all_equal(out, tmp_path, model, *calls)
    program = out.to_onnx(tmp_path / "model.onnx")
    assert [(port.name, port.kind) for port in program.inputs] == [
        ("token", "user"), ("state.keys", "state"), ("state.values", "state"),
        ("state.at", "state"),
    ]  # fmt: skip
    assert [port.name for port in program.outputs] == [
        "result", "new_state.keys", "new_state.values", "new_state.at",
    ]  # fmt: skip


def test_a_buffer_that_is_changed_and_returned(tmp_path: Path) -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.total.add_(x)

    class Copy(Sum):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) + 0

    out = aot.export(Sum(), args=[torch.ones(3)])
    assert_all_equal(out, tmp_path, Copy(), *[[torch.randn(3)] for _ in range(3)])


def test_integers_and_bools(tmp_path: Path) -> None:
    out = aot.export(
        Gathering(),
        args=[aot.InputInfo((BATCH, 6), torch.int64), aot.InputInfo((BATCH, 6), torch.bool)],
    )
    calls = [[torch.arange(6 * n).reshape(n, 6) % 7, torch.rand(n, 6) > 0.5] for n in (1, 4, 8)]
    assert_all_equal(out, tmp_path, Gathering(), *[[x * 5 % 37, flags] for x, flags in calls])


def test_numbers_that_drive_shapes_are_inputs(tmp_path: Path) -> None:
    def resized(x: torch.Tensor, n: int) -> tuple[torch.Tensor, int]:
        return x[:, :n] * n + torch.arange(n), x.shape[0] * 2 + n

    out = aot.export(
        resized,
        args=[aot.InputInfo((BATCH, 9), torch.float32), aot.DimensionInputInfo((1, 3, 9))],
    )
    calls = [[torch.randn(b, 9), n] for b, n in ((1, 1), (4, 3), (8, 9))]
    assert_all_equal(out, tmp_path, resized, *calls)
    program = out.to_onnx(tmp_path / "model.onnx")
    assert program.inputs[1].is_python_number
    assert program.dims[0].name == "batch"


def test_containers_keep_their_names(tmp_path: Path) -> None:
    def mixed(x: torch.Tensor, rest: dict[str, Any], scale: float = 2.0) -> dict[str, Any]:
        return {"a": [x * scale, None], "b": (rest["bias"] + x, 7)}

    x = torch.randn(3)
    out = aot.export(mixed, args=(x, {"bias": x + 1}, 2.0))
    assert_all_equal(out, tmp_path, mixed, [x, {"bias": x + 1}, 2.0])
    program = out.to_onnx(tmp_path / "model.onnx")
    assert [port.name for port in program.inputs] == ["x", "rest.bias"]
    assert [port.name for port in program.outputs] == ["result.a.0", "result.b.0"]


def test_dimensions_have_the_names_of_the_user(tmp_path: Path) -> None:
    def doubled(x: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, x], 0)

    out = aot.export(doubled, args=[aot.InputInfo((BATCH, 3), torch.float32)])
    session = OnnxRun(out.to_onnx(tmp_path / "model.onnx")).session
    assert session.get_inputs()[0].shape == ["batch", 3]
    assert session.get_outputs()[0].shape == ["2*batch", 3]


def test_external_parameters_are_put_in(tmp_path: Path) -> None:
    model = varied()
    out = aot.export(model, args=(TOKENS,), external_parameters=lambda name: name != "coarse")
    run = OnnxRun(out.to_onnx(tmp_path / "model.onnx"))
    torch.testing.assert_close(run(TOKENS), eager(model, TOKENS))


def test_weights_may_be_inputs(tmp_path: Path) -> None:
    model = Cnn().eval()
    x = torch.randn(2, 3, 16, 16)
    out = aot.export(model, args=(x,))
    program = onnx.to_onnx(open_source(out.mlir_module), weights_as_inputs=True)
    assert {port.kind for port in program.inputs} == {"user", "parameter"}
    assert set(program.parameters) == {p.name for p in program.inputs if p.kind == "parameter"}
    with torch.no_grad():
        torch.testing.assert_close(OnnxRun(program)(x), model(x), rtol=1e-4, atol=1e-5)


def test_weights_go_to_a_file_of_their_own_on_request(tmp_path: Path) -> None:
    model = nn.Linear(64, 64)
    out = aot.export(model, args=(torch.ones(64),))
    program = out.to_onnx(tmp_path / "model.onnx", external_data=True)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["model.onnx", "model.onnx.data"]
    assert (tmp_path / "model.onnx").stat().st_size < 64 * 64
    with torch.no_grad():
        torch.testing.assert_close(OnnxRun(program)(torch.ones(64)), model(torch.ones(64)))


def test_doubles_stay_doubles(tmp_path: Path) -> None:
    out = aot.export(lambda x: x.sin() + 1e-12, args=(torch.ones(3, dtype=torch.float64),))
    x = torch.randn(3, dtype=torch.float64)
    assert_all_equal(out, tmp_path, lambda x: x.sin() + 1e-12, [x], rtol=1e-14, atol=0.0)


def test_all_operators_that_onnx_lacks_are_named(tmp_path: Path) -> None:
    def pooled(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return F.adaptive_avg_pool3d(x, 3), torch.empty_like(x).uniform_()

    out = aot.export(pooled, args=(torch.ones(2, 1, 4, 4),))
    with pytest.raises(aot.UnsupportedOpError, match=r"have no form in ONNX") as info:
        out.to_onnx(tmp_path / "model.onnx")
    missing = ["aten._adaptive_avg_pool3d.default", "prims.uniform.default"]
    assert list(info.value.operators) == missing
    assert not list(tmp_path.iterdir())


def test_complex_inputs_and_outputs_are_refused_by_name(tmp_path: Path) -> None:
    def turned(z: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(z * 1j)

    def made(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"wave": torch.view_as_complex(x)}

    z = torch.ones(3, dtype=torch.complex64)
    for function, given, name in (
        (turned, z, "input 'z' is torch.complex64"),
        (made, torch.ones(3, 2), "output 'result.wave' is torch.complex64"),
    ):
        out = aot.export(function, args=(given,))
        with pytest.raises(aot.UnsupportedOpError, match=name):
            out.to_onnx(tmp_path / "model.onnx")
        assert not list(tmp_path.iterdir())


def test_a_module_of_several_entry_points_needs_a_name(tmp_path: Path) -> None:
    class Two(aot.CompiledModule):
        def one(self, x=aot.AbstractTensor(2)):
            return x + x

        def two(self, x=aot.AbstractTensor(2)):
            return x * x

    out = aot.export(Two)
    with pytest.raises(aot.ExportError, match="name the function: one, two"):
        out.to_onnx(tmp_path / "model.onnx")
    assert OnnxRun(out.to_onnx(tmp_path / "two.onnx", "two"))(torch.full((2,), 3.0)).tolist() == [
        9.0,
        9.0,
    ]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    out = aot.export(lambda x: x + 1, args=(torch.ones(2),))
    source = open_source(out.mlir_module)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(aot.MissingDependencyError, match=r"pip install 'pelton\[onnx\]'"):
        onnx.to_onnx(source)


@pytest.mark.parametrize(("width", "values"), [(12, 8), (8, 12)])
def test_attention_of_several_widths_is_built_and_right(
    width: int, values: int, tmp_path: Path
) -> None:
    pytest.importorskip("tensorrt_rtx")
    length = aot.NamedDimension("length", 1, 5, 9)
    shapes = [(2, 4, length, width), (2, 4, length, width), (2, 4, length, values)]
    args = [aot.InputInfo(shape, torch.float32) for shape in shapes]
    attend = F.scaled_dot_product_attention
    out = aot.export(lambda q, k, v: attend(q, k, v, is_causal=True) * 2, args=args)
    out.compile(tmp_path / "m.trtm", target="tensorrt", reference=True)
    exe = runtime.load(tmp_path / "m.trtm", device="reference")
    for size in (1, 5, 9):
        q, k = torch.randn(2, 4, size, width), torch.randn(2, 4, size, width)
        v = torch.randn(2, 4, size, values)
        assert_same(exe(q, k, v), attend(q, k, v, is_causal=True) * 2)


def test_a_view_needs_no_layout_of_memory(tmp_path: Path) -> None:
    """Tensors of the module have none; torch's may lie in another order than when it was traced."""

    def turned(x: torch.Tensor) -> torch.Tensor:
        return x.transpose(0, 1).contiguous().view(12)

    text = str(aot.export(turned, args=(torch.zeros(3, 4),)).mlir_module)
    copied = re.search(r"(%\d+) = torch.aten.contiguous (%\d+), .*", text)
    assert copied is not None
    text = text.replace(copied[0], "").replace(f"{copied[1]},", f"{copied[2]},")
    (tmp_path / "turned.mlir").write_text(text)
    x = torch.randn(3, 4)
    assert_all_equal(aot.export(tmp_path / "turned.mlir"), tmp_path, turned, (x,))


@pytest.mark.parametrize(
    "spread",
    [
        torch.std,
        torch.var_mean,
        pytest.param(torch.var, marks=pytest.mark.deep),
        pytest.param(torch.std_mean, marks=pytest.mark.deep),
    ],
)
def test_the_spread_of_no_elements_is_not_zero(spread: Any, tmp_path: Path) -> None:
    x = torch.zeros(3, 0)
    warnings.filterwarnings("ignore", "(var|std).*degrees of freedom")
    for options in ({}, {"dim": 1, "keepdim": True}, {"dim": (0, 1), "correction": 0}):
        out = aot.export(lambda x, options=options: spread(x, **options), args=(x,))
        run = OnnxRun(out.to_onnx(tmp_path / "spread.onnx"))
        assert_same(run(x), spread(x, **options))


@pytest.mark.parametrize("pool", [F.avg_pool2d, pytest.param(F.avg_pool3d, marks=pytest.mark.deep)])
def test_an_average_has_the_divisor_that_is_asked_for(pool: Any, tmp_path: Path) -> None:
    x = torch.randn(2, 3, 5, 6, 7)[:, :, 0 if pool is F.avg_pool2d else slice(None)]
    for ceil_mode, stride, padding in ((False, 2, 1), (True, 2, 1), (True, 3, 0), (False, 1, 0)):

        def pooled(x: torch.Tensor, args: Any = (3, stride, padding, ceil_mode)) -> torch.Tensor:
            return pool(x, *args, divisor_override=5)

        assert_all_equal(aot.export(pooled, args=(x,)), tmp_path, pooled, (x,))


def test_a_batch_is_normalised_by_its_own_statistics(tmp_path: Path) -> None:
    def normal(x: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, mean.clone(), mean.abs(), training=True)

    x, mean = torch.randn(5, 3, 4), torch.randn(3)
    assert_all_equal(aot.export(normal, args=(x, mean)), tmp_path, normal, (x, mean))


def test_a_result_may_be_an_input(tmp_path: Path) -> None:
    def given_back(x: torch.Tensor, y: torch.Tensor) -> Any:
        return y.float(), x * 2, x

    args = (torch.randn(3), torch.randn(2))
    assert_all_equal(aot.export(given_back, args=args), tmp_path, given_back, args)


def test_extremes_of_all_elements(tmp_path: Path) -> None:
    def extremes(x: torch.Tensor) -> Any:
        return torch.amax(x), torch.amin(x, (), keepdim=True)

    x = torch.randn(3, 4)
    assert_all_equal(aot.export(extremes, args=(x,)), tmp_path, extremes, (x,))


def test_indices_of_int32_are_those_of_onnx(tmp_path: Path) -> None:
    def indexed(x: torch.Tensor, i: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ones = torch.ones(2, 4)
        return (
            x[i],
            x[:, i],
            x[i, i],
            torch.ops.aten.index_put(x, (i,), ones),
            torch.ops.aten.index_put(x, (None, i), ones[:1, :2], True),
            x.index_add(0, i, ones),
        )

    args = (torch.randn(3, 4), torch.tensor([1, 0], dtype=torch.int32))
    assert_all_equal(aot.export(indexed, args=args), tmp_path, indexed, args)


def test_an_inverse_short_time_transform_runs(tmp_path: Path) -> None:
    window = torch.hann_window(16)

    def signal(real: torch.Tensor, imaginary: torch.Tensor) -> torch.Tensor:
        spectrum = torch.complex(real, imaginary)
        return torch.istft(spectrum, 16, hop_length=4, window=window)

    args = (torch.randn(1, 9, 7), torch.randn(1, 9, 7))
    args[1][:, [0, -1]] = 0  # as of a real signal
    assert_all_equal(aot.export(signal, args=args), tmp_path, signal, args)


def test_a_keyword_without_a_default_is_given(tmp_path: Path) -> None:
    def quotient(x: torch.Tensor) -> torch.Tensor:
        return torch.div(x, x + 3, rounding_mode=None)

    args = (torch.rand(4),)
    assert_all_equal(aot.export(quotient, args=args), tmp_path, quotient, args)


def test_what_torch_cannot_trace_again_is_refused_with_operator_and_line(tmp_path: Path) -> None:
    def best(scores: torch.Tensor) -> torch.Tensor:
        return scores[scores > 0.5].sort(descending=True)[0][:200]

    line = best.__code__.co_firstlineno + 1
    rows = aot.NamedDimension("rows", 1, 5, 20)
    out = aot.export(best, args=[aot.InputInfo((rows,), torch.float32)])
    with pytest.raises(aot.UnsupportedOpError) as caught:
        out.to_onnx(tmp_path / "model.onnx")
    assert caught.value.operators == ("aten.slice.Tensor",)
    assert "aten.slice.Tensor: it needs a number, and Min(" in str(caught.value)
    assert str(caught.value).endswith(f"(at {__file__}:{line})")
    assert not (tmp_path / "model.onnx").exists()
