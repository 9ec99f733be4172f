"""Rewrites of ONNX models: they preserve values, and leave what they are not for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")

import onnx_ir  # noqa: E402
from onnx.reference import ReferenceEvaluator  # noqa: E402

from pelton.aot.raising import onnx_optimizer  # noqa: E402


def model_of(text: str) -> Any:
    """Return a model in ONNX's text, with the shapes of its values."""
    proto = onnx.parser.parse_model(f'<ir_version: 11, opset_import: ["" : 23]> main {text}')
    return onnx_ir.from_proto(onnx.shape_inference.infer_shapes(proto, data_prop=True))


def run(model: Any, *args: np.ndarray) -> list[np.ndarray]:
    proto = onnx_ir.to_proto(model)
    onnx.checker.check_model(proto)
    names = [value.name for value in proto.graph.input]
    return ReferenceEvaluator(proto).run(None, dict(zip(names, args, strict=True)))


def optimized(text: str, *args: np.ndarray) -> Any:
    """Return the optimised model, which gives for some inputs what it gave before."""
    before, model = run(model_of(text), *args), model_of(text)
    onnx_optimizer.optimize(model)
    for found, wanted in zip(run(model, *args), before, strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    return model


def operators(model: Any) -> list[str]:
    return [node.op_type for node in model.graph.all_nodes()]


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_small_constants_of_normalisations_stay() -> None:
    text = """(float[2] x) => (float[2] y) {
        small = Constant<value = float {1e-12}>()
        z = Add(x, small)
        y = Sqrt(z)
    }"""
    zeros = np.zeros(2, np.float32)
    model = optimized(text, zeros)
    assert operators(model) == ["Add", "Sqrt"]
    assert run(model, zeros)[0].min() > 0


SELECT = """(float[N, 4] x) => (float[N] y) {{
    start = Constant<value_ints=[{start}]>()
    end = Constant<value_ints=[{end}]>()
    axes = Constant<value_ints=[{axis}]>()
    steps = Constant<value_ints=[{step}]>()
    z = Slice(x, start, end, axes, steps)
    y = Squeeze(z, axes)
}}"""


@pytest.mark.parametrize("place", [0, 3])
def test_a_slice_of_one_element_that_is_squeezed_is_a_gather(place: int) -> None:
    text = SELECT.format(start=place, end=place + 1, axis=1, step=1)
    model = optimized(text, random(3, 4))
    assert operators(model) == ["Gather"]
    assert [value.name for value in model.graph.outputs] == ["y"]


@pytest.mark.parametrize(
    ("start", "end", "step"), [(-1, 9, 1), (3, 9, 1), (1, 0, -1)], ids=["end", "beyond", "backward"]
)
def test_other_slices_of_one_element_stay(start: int, end: int, step: int) -> None:
    text = SELECT.format(start=start, end=end, axis=1, step=step)
    assert "Gather" not in operators(optimized(text, random(3, 4)))


def test_a_slice_along_a_dynamic_axis_stays() -> None:
    text = SELECT.format(start=0, end=1, axis=0, step=1).replace("float[N] y", "float[4] y")
    assert "Gather" not in operators(optimized(text, random(3, 4)))


@pytest.mark.parametrize("kept", [0, 1])
@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
def test_a_place_in_one_dimension_is_one_in_the_second_of_two(kind: str, kept: int) -> None:
    text = f"""(float[4] x, float[2, 3] m) => (int64{"[1]" * kept} y, int64{"[1]" * kept} w) {{
        y = {kind}<axis=0, keepdims={kept}>(x)
        all = Constant<value_ints=[-1]>()
        v = Reshape(m, all)
        w = {kind}<axis=0, keepdims={kept}>(v)
    }}"""
    model = optimized(text, random(4), random(2, 3))
    places = [node for node in model.graph if node.op_type == kind]
    assert [node.attributes["axis"].as_int() for node in places] == [1, 1]
    assert [value.name for value in model.graph.outputs] == ["y", "w"]


def attention(widths: tuple[int, int, int], mask: str = "", **sizes: Any) -> str:
    lengths = {"queries": 3, "keys": 5, **sizes}
    scale = "<scale = 0.7>" if sizes.get("scaled") else ""
    query, key, value = widths
    given = f", bool[1, 1, {mask}] mask" if mask else ""
    return f"""(
        float[B, 2, {lengths["queries"]}, {query}] q, float[B, 2, {lengths["keys"]}, {key}] k,
        float[B, 2, {lengths["keys"]}, {value}] v{given}
    ) => (float[B, 2, {lengths["queries"]}, {value}] y) {{
        y = Attention{scale}(q, k, v{", mask" if mask else ""})
    }}"""


def qkv(*widths: int) -> list[np.ndarray]:
    return [random(2, 2, rows, width) for rows, width in zip((3, 5, 5), widths, strict=True)]


def test_attention_has_its_scale_stated_and_a_given_one_stays() -> None:
    (node,) = optimized(attention((4, 4, 4)), *qkv(4, 4, 4)).graph
    assert node.attributes["scale"].as_float() == 0.5
    (node,) = optimized(attention((4, 4, 4), scaled=True), *qkv(4, 4, 4)).graph
    assert node.attributes["scale"].as_float() == pytest.approx(0.7)


@pytest.mark.parametrize("widths", [(4, 4, 8), (8, 8, 4), (4, 4, 2)])
def test_operands_of_attention_get_one_width(widths: tuple[int, int, int]) -> None:
    model = optimized(attention(widths), *qkv(*widths))
    (node,) = [node for node in model.graph if node.op_type == "Attention"]
    assert {value.shape[3] for value in node.inputs[:3]} == {max(widths)}
    assert list(model.graph.outputs[0].shape)[1:] == [2, 3, widths[2]]


MASKS = {"1, 5": (1, 5), "3, 1": (3, 1), "1, 1": (1, 1), "3, 5": (3, 5)}


@pytest.mark.parametrize("shape", MASKS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_masks_get_a_row_for_each_query_and_a_column_for_each_key(
    shape: str, dynamic: bool
) -> None:
    mask = np.ones((1, 1, *MASKS[shape]), bool)
    mask[..., -1] = mask.shape[-1] == 1
    model = model_of(
        attention((4, 4, 4), shape, **({"queries": "Q", "keys": "K"} if dynamic else {}))
    )
    onnx_optimizer.optimize(model)
    # ONNX fills a mask of one column up with columns that hide; torch repeats it.
    args = [torch.from_numpy(array) for array in (*qkv(4, 4, 4), mask)]
    wanted = torch.nn.functional.scaled_dot_product_attention(*args).numpy()
    np.testing.assert_allclose(run(model, *qkv(4, 4, 4), mask)[0], wanted, rtol=1e-5, atol=1e-6)
    expanded = "Expand" in operators(model)
    assert expanded == (MASKS[shape] != (3, 5))


def test_a_mask_that_two_attentions_share_is_expanded_once() -> None:
    text = """(
        float[1, 2, 3, 4] q, float[1, 2, 5, 4] k, float[1, 2, 5, 4] v, bool[1, 1, 1, 5] mask
    ) => (float[1, 2, 3, 4] y) {
        a = Attention(q, k, v, mask)
        y = Attention(a, k, v, mask)
    }"""
    args = [array[:1] for array in qkv(4, 4, 4)]
    mask = np.array([True, False, True, True, False]).reshape(1, 1, 1, 5)
    assert operators(optimized(text, *args, mask)).count("Expand") == 1


def test_a_model_without_nodes_of_its_own_is_left_as_it_is() -> None:
    model = optimized("(float[2] x) => (float[2] y) { y = Identity(x) }", random(2))
    assert [value.name for value in model.graph.outputs] == ["y"]
