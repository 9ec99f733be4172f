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
from pelton.aot.raising.fx.torch_operators import overload_of
from tests.aot.raising.oracles import assert_all_equal
from tests.aot.raising.texts import body, raised, run, same, targets_of
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


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("torch.aten.add.Tensor", "aten.add.Tensor"), ("torch.aten.relu", "aten.relu.default"),
        ("torch.aten.index.Tensor_hacked_twin", "aten.index.Tensor"),
        ("torch.aten.index_put.hacked_twin", "aten.index_put.default"),
        ("torch.prims.squeeze", "prims.squeeze.default"), ("torch.aten.nothing", "None"),
        ("torch.aten.add.Nothing", "None"), ("torch.nothing.add", "None"), ("torch.aten", "None"),
    ],
)  # fmt: skip
def test_operators_are_found_by_their_names_in_the_dialect(name: str, expected: str) -> None:
    assert str(overload_of(name)) == expected


def test_enumerations_are_decoded_and_defaults_left_out() -> None:
    text = body(
        """
        %f16 = torch.constant.int 5
        %no = torch.constant.bool false
        %none = torch.constant.none
        %a = torch.aten.to.dtype %x, %f16, %no, %no, %none : !torch.vtensor<[2],f32>, !torch.int,
          !torch.bool, !torch.bool, !torch.none -> !torch.vtensor<[2],f16>
        %contiguous = torch.constant.int 0
        %b = torch.aten.clone %a, %contiguous
          : !torch.vtensor<[2],f16>, !torch.int -> !torch.vtensor<[2],f16>
        %dim = torch.constant.int 0
        %c = torch.aten.sum %b, %none
          : !torch.vtensor<[2],f16>, !torch.none -> !torch.vtensor<[],f16>
        return %b, %c : !torch.vtensor<[2],f16>, !torch.vtensor<[],f16>
        """,
        "%x: !torch.vtensor<[2],f32>",
        "!torch.vtensor<[2],f16>, !torch.vtensor<[],f16>",
    )
    b, c = run(text, torch.tensor([1.0, 2.0]))
    assert same(b, [1.0, 2.0], torch.float16)
    assert same(c, 3.0, torch.float16)
    convert, clone, total = (
        node for node in raised(text).graph_module.graph.nodes if node.op == "call_function"
    )
    assert convert.args[1] is torch.float16
    assert clone.kwargs == {"memory_format": torch.contiguous_format}
    assert total.kwargs == {}


def test_an_operator_with_several_results_gives_each_its_type() -> None:
    text = body(
        """
        %zero = torch.constant.int 0
        %no = torch.constant.bool false
        %a, %b = torch.aten.max.dim %x, %zero, %no : !torch.vtensor<[3],f32>, !torch.int,
          !torch.bool -> !torch.vtensor<[],f32>, !torch.vtensor<[],si64>
        return %b, %a : !torch.vtensor<[],si64>, !torch.vtensor<[],f32>
        """,
        "%x: !torch.vtensor<[3],f32>",
        "!torch.vtensor<[],si64>, !torch.vtensor<[],f32>",
    )
    place, value = run(text, torch.tensor([1.0, 5.0, 2.0]))
    assert same(place, 1, torch.int64)
    assert same(value, 5.0, torch.float32)


def test_a_size_is_known_where_the_type_says_it_and_read_where_not() -> None:
    text = body(
        """
        %last = torch.constant.int -1
        %zero = torch.constant.int 0
        %a = torch.aten.size.int %x, %zero : !torch.vtensor<[?,4],f32>, !torch.int -> !torch.int
        %b = torch.aten.size.int %x, %last : !torch.vtensor<[?,4],f32>, !torch.int -> !torch.int
        %c = torch.aten.dim %x : !torch.vtensor<[?,4],f32> -> !torch.int
        %d = torch.aten.numel %x : !torch.vtensor<[?,4],f32> -> !torch.int
        return %a, %b, %c, %d : !torch.int, !torch.int, !torch.int, !torch.int
        """,
        "%x: !torch.vtensor<[?,4],f32>",
        "!torch.int, !torch.int, !torch.int, !torch.int",
    )
    for rows in (0, 1, 3):
        assert [value.item() for value in run(text, torch.zeros(rows, 4))] == [rows, 4, 2, 4 * rows]
    assert targets_of(raised(text)).count("aten.sym_size.int") == 1


@pytest.mark.parametrize("dtype", ["si64", "f32"])
def test_a_tensor_of_a_number_is_true_unless_it_is_zero(dtype: str) -> None:
    text = body(
        f"""
        %c = torch.aten.Bool.Tensor %x : !torch.vtensor<[],{dtype}> -> !torch.bool
        %r = torch.prim.If %c -> (!torch.vtensor<[],{dtype}>) {{
          torch.prim.If.yield %x : !torch.vtensor<[],{dtype}>
        }} else {{
          torch.prim.If.yield %y : !torch.vtensor<[],{dtype}>
        }}
        return %r : !torch.vtensor<[],{dtype}>
        """,
        f"%x: !torch.vtensor<[],{dtype}>, %y: !torch.vtensor<[],{dtype}>",
        f"!torch.vtensor<[],{dtype}>",
    )
    kind = torch.int64 if dtype == "si64" else torch.float32
    for value, expected in ((0, 9), (-2, -2)):
        found = run(text, torch.tensor(value, dtype=kind), torch.tensor(9, dtype=kind))
        assert found[0].item() == expected


def test_a_number_that_only_a_run_tells_is_added_as_a_tensor_of_the_type() -> None:
    text = body(
        """
        %one = torch.constant.int 1
        %n = torch.aten.Float.Tensor %y : !torch.vtensor<[],f64> -> !torch.float
        %a = torch.aten.add.Scalar %x, %n, %one : !torch.vtensor<[2],f16>, !torch.float, !torch.int
          -> !torch.vtensor<[2],f16>
        %b = torch.aten.mul.Scalar %a, %n
          : !torch.vtensor<[2],f16>, !torch.float -> !torch.vtensor<[2],f16>
        return %b : !torch.vtensor<[2],f16>
        """,
        "%x: !torch.vtensor<[2],f16>, %y: !torch.vtensor<[],f64>",
        "!torch.vtensor<[2],f16>",
    )
    x = torch.tensor([1.0, 2.0], dtype=torch.half)
    assert same(run(text, x, torch.tensor(3.0, dtype=torch.float64))[0], [12.0, 15.0], torch.half)
    assert "aten.add.Tensor" in targets_of(raised(text))


@pytest.mark.parametrize("rank", [2, 3, 4])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_of_fewer_dimensions_is_that_of_four(rank: int, masked: bool) -> None:
    sizes = [1] * (rank - 3) + [2] * (rank > 2) + [3, 4]
    kind = f"!torch.vtensor<{str(sizes).replace(' ', '')},f32>"
    square = str([*sizes[:-1], 3]).replace(" ", "")
    mask = f"!torch.vtensor<{square},f32>" if masked else "!torch.none"
    text = body(
        f"""
        %none = torch.constant.none
        %p = torch.constant.float 0.0
        %no = torch.constant.bool false
        %scale = torch.constant.float 0.5
        %a = torch.aten.scaled_dot_product_attention %q, %k, %v, {"%m" if masked else "%none"},
          %p, %no, %scale, %no
          : {kind}, {kind}, {kind}, {mask}, !torch.float, !torch.bool, !torch.float, !torch.bool
          -> {kind}
        return %a : {kind}
        """,
        f"%q: {kind}, %k: {kind}, %v: {kind}" + (f", %m: {mask}" if masked else ""),
        kind,
    )
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(sizes, generator=generator) for _ in range(3))
    given = [torch.randn([*sizes[:-1], 3], generator=generator)] if masked else []
    (found,) = run(text, q, k, v, *given)
    wanted = nn.functional.scaled_dot_product_attention(q, k, v, *given, scale=0.5)
    torch.testing.assert_close(found, wanted)


def test_an_assertion_of_the_program_stops_with_its_message() -> None:
    text = body(
        """
        %two = torch.constant.int 2
        %c = torch.aten.lt.int %n, %two : !torch.int, !torch.int -> !torch.bool
        %m = torch.constant.str "n is too large"
        %i = torch.aten.Int.bool %c : !torch.bool -> !torch.int
        torch.aten._assert_scalar %i, %m : !torch.int, !torch.str
        return %n : !torch.int
        """,
        "%n: !torch.int",
        "!torch.int",
    )
    assert run(text, 1)[0].item() == 1
    with pytest.raises(aot.PeltonError, match="n is too large"):
        run(text, 2)
