"""Operators, constants and numbers of the torch dialect, raised to what they came from."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot
from pelton.aot.raising.fx import open_source, raise_function
from tests.aot.raising.oracles import assert_all_equal
from tests.programs import assert_same

DTYPES = (
    torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float16,
    torch.bfloat16, torch.float32, torch.float64,
)  # fmt: skip


def values(shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    return (torch.arange(torch.Size(shape).numel()).reshape(shape) % 5).to(dtype)


class Holder(nn.Module):
    """Returns its buffers: a number, a small tensor, a large one, and an empty one."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        for number, shape in enumerate([(), (3,), (60, 90), (0, 2)]):
            self.register_buffer(f"buffer_{number}", values(shape, dtype))

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [x.clone(), *(buffer.clone() for buffer in self.buffers())]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("suffix", [".mlir", ".mlirbc"])
def test_weights_of_all_types_are_read(tmp_path: Path, dtype: torch.dtype, suffix: str) -> None:
    model, x = Holder(dtype), values((4,), dtype)
    out = aot.export(model, args=(x,))
    out.save_mlir(tmp_path / f"module{suffix}")
    assert_same(aot.to_torch(out)(x), model(x), rtol=0, atol=0)
    assert_same(aot.to_torch(tmp_path / f"module{suffix}")(x), model(x), rtol=0, atol=0)


@pytest.mark.parametrize(
    ("element", "text", "expected"),
    [
        ("bf16", "[1.0, -2.5]", torch.tensor([1.0, -2.5], dtype=torch.bfloat16)),
        ("bf16", '"0x803F20C0"', torch.tensor([1.0, -2.5], dtype=torch.bfloat16)),
        ("bf16", "0x7F80", torch.tensor([torch.inf, torch.inf], dtype=torch.bfloat16)),
        ("f8E4M3FN", "[0.5, 448.0]", torch.tensor([0.5, 448.0]).to(torch.float8_e4m3fn)),
        ("complex<f32>", "[(1.0,2.0), (3.0,-4.0)]", torch.tensor([1 + 2j, 3 - 4j])),
        ("complex<f32>", "(0.0,1.0)", torch.tensor([1j, 1j])),
    ],
)
def test_constants_that_the_bindings_cannot_read(
    tmp_path: Path, element: str, text: str, expected: torch.Tensor
) -> None:
    type_ = f"!torch.vtensor<[2],{element}>"
    (tmp_path / "module.mlir").write_text(f"""
    func.func @main() -> {type_} {{
      %0 = torch.vtensor.literal(dense<{text}> : tensor<2x{element}>) : {type_}
      return %0 : {type_}
    }}""")
    made = aot.to_torch(tmp_path / "module.mlir")()
    assert made.dtype == expected.dtype
    assert torch.equal(made.view(torch.uint8), expected.view(torch.uint8))


def test_a_graph_has_the_operators_of_the_program() -> None:
    model = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), nn.GELU()).eval()
    out = aot.export(model, args=(torch.ones(2, 4),))
    graph = raise_function(open_source(out.mlir_module), "main").graph_module.graph
    assert [str(node.target) for node in graph.nodes if node.op == "call_function"] == [
        "aten.layer_norm.default", "aten.linear.default", "aten.gelu.default",
    ]  # fmt: skip


def test_ports_say_what_inputs_and_outputs_are() -> None:
    batch = aot.NamedDimension("batch", 1, 4, 8)
    out = aot.export(
        lambda x, n: {"rows": torch.cat([x, x]), "n": n + 1},
        args=[aot.InputInfo((batch, 3), torch.float16), aot.DimensionInputInfo((1, 2, 4))],
    )
    raised = raise_function(open_source(out.mlir_module), "main")
    x, n = raised.inputs
    assert (x.name, x.kind, x.dtype, x.shape) == ("x", "user", torch.float16, ("batch", 3))
    assert n.is_python_number and n.shape == ()
    rows, total = raised.outputs
    assert (rows.name, rows.origin) == ("result.rows", "result['rows']")
    assert rows.shape == (["*", 2, "batch"], 3)
    assert total.is_scalar and total.dtype is torch.int64
    bounds = {dim.name: (dim.min, dim.opt, dim.max) for dim in raised.dims}
    assert bounds["batch"] == (1, 4, 8)


PROGRAMS: dict[str, Any] = {
    "halves": lambda x: x[: x.shape[0] // 2].reshape(-1) * (x.shape[0] % 3),
    "split": lambda x: [part * 2 for part in torch.split(x, [1, 3], dim=1)],
    "unbound": lambda x: torch.stack(x.unbind(1)[::-1]),
    "indexed": lambda x: x[:, [0, 2]] + x[:, None, 1:3].sum(1),
    "sorted": lambda x: tuple(x.topk(2, dim=1)),
    "merged": lambda x: x.view(-1, 2, 2).transpose(1, 2).reshape(x.shape[0], -1),
    "extremes": lambda x: (x.argmin(), x.amax(0), x.max(1).values, x.argmax(1)),
    "scaled": lambda x: x * (x.shape[0] / 2) + x.numel() / 3,
    "filled": lambda x: torch.full_like(x, 2).masked_fill(x > 0, -1.5).to(torch.float64),
    "tiny": lambda x: torch.sqrt((x * 0).square().mean(1) + 1e-12),
    "weighted": lambda x: nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_a_dynamic_size(tmp_path: Path, name: str) -> None:
    rows = aot.NamedDimension("rows", 1, 6, 12)
    out = aot.export(PROGRAMS[name], args=[aot.InputInfo((rows, 4), torch.float32)])
    calls = [[torch.randn(n, 4)] for n in (1, 2, 6, 12)]
    assert_all_equal(out, tmp_path, PROGRAMS[name], *calls)


def test_a_loop_of_torch(tmp_path: Path) -> None:
    def looped(x: torch.Tensor) -> Any:
        from torch._higher_order_ops.while_loop import while_loop

        start = (torch.tensor(0), x)
        return while_loop(lambda i, v: i < 3, lambda i, v: (i + 1, v * 2), start)

    out = aot.export(looped, args=(torch.ones(3),))
    assert_all_equal(out, tmp_path, looped, [torch.randn(3)])


def test_a_recurrent_network(tmp_path: Path) -> None:
    model = nn.LSTM(4, 6, batch_first=True).eval()
    x = torch.randn(2, 3, 4)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The tensor attributes")
        out = aot.export(model, args=(x,))
    assert_all_equal(out, tmp_path, model, [x])
