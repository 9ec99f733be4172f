"""Networks of ONNX models: what is parsed, and all reasons why something is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx_ir
import pytest

pytest.importorskip("tensorrt_rtx")
pytest.importorskip("onnxscript")

from pelton.aot.targets.base import Refusal
from pelton.aot.targets.tensorrt.library import Log
from pelton.aot.targets.tensorrt.network import (
    Network,
    layer_descriptions,
    location_of_onnx_node,
    operator_of,
    operators_of,
    parse,
    refusals,
    typed_wrongly,
    unsupported,
)
from tests.aot.targets.tensorrt.models import opened, program_of

RELU = "(float[N, 2] x) => (float[N, 2] y) { h = Relu(x) y = Add(h, x) }"


def network_of(text: str) -> tuple[Network | None, Any]:
    program = program_of(text)
    with opened() as (library, logger, _):
        return parse(library, logger, program.to_bytes()), program


def test_a_model_is_a_network_with_its_layers_and_lines() -> None:
    program = program_of(RELU)
    node = program.model.graph[0]
    node.metadata_props["pkg.torch.onnx.stack_trace"] = 'File "model.py", line 7, in forward'
    node.metadata_props["pkg.torch.onnx.fx_node"] = "[target=torch.ops.aten.relu.default](args)"
    with opened() as (library, logger, _):
        network = parse(library, logger, program.to_bytes())
        assert network is not None
        described = {layer["name"]: layer for layer in layer_descriptions(network, program)}
    assert described["node_0"] == {
        "name": "node_0", "kind": "activation", "operator": "aten.relu.default",
        "line": "model.py:7",
        "outputs": [{"name": "h", "dtype": "float", "shape": [-1, 2]}],
    }  # fmt: skip
    assert (described["node_1"]["operator"], described["node_1"]["line"]) == ("Add", None)
    assert len(described) == len(network.layers)
    assert network.host_inputs == set()


def test_a_model_is_parsed_from_a_file(tmp_path: Path) -> None:
    path = program_of(RELU).save(tmp_path / "model.onnx")
    with opened() as (library, logger, _):
        network = parse(library, logger, path)
        assert network is not None and len(network.layers) == 2


def test_an_input_that_shapes_tensors_is_read_on_the_host() -> None:
    network, _ = network_of("""(float[4] x, int64[1] n) => (float[N] y) {
        zero = Constant<value_ints=[0]>()
        y = Slice(x, zero, n)
    }""")
    assert network is not None
    assert network.host_inputs == {"n"}


@pytest.mark.parametrize(("type_", "name"), [("double", "float64"), ("int16", "int16")])
def test_element_types_that_tensorrt_lacks_are_named_wherever_they_are(
    type_: str, name: str
) -> None:
    found = typed_wrongly(
        program_of(f"""({type_}[2] x, float[2] z) => ({type_}[2] y, float[2] w) {{
            a = Neg(x)
            y = Neg(a)
            w = Neg(z)
        }}""")
    )
    assert [refusal.operator for refusal in found] == ["user input 'x'", "Neg"]
    assert all(f"TensorRT has no {name}" in refusal.reason for refusal in found)
    assert all(("use float32" in r.reason) == (name == "float64") for r in found)


def test_types_that_tensorrt_has_are_not_refused() -> None:
    text = """(float[2] x, int64[2] i, bool[2] b) => (float[2] y) {
        c = Cast<to=1>(i)
        y = Where(b, c, x)
    }"""
    assert typed_wrongly(program_of(text)) == []


def test_constants_of_uint8_are_refused_as_operands_and_results() -> None:
    found = typed_wrongly(
        program_of("""(uint8[2] x, bool[2] b) => (uint8[2] y, uint8[2] z)
        <uint8[2] z = {1, 2}> {
            y = Where(b, x, z)
        }""")
    )
    assert [refusal.operator for refusal in found] == ["result 'z'", "Where"]
    assert all("no constants of uint8; make it of int32" in r.reason for r in found)


def test_a_reason_is_in_words() -> None:
    program = program_of("""(int8[2] x, int8[2] z) => (int8[2] y) {
        y = BitwiseAnd(x, z)
    }""")
    with opened() as (library, logger, _):
        (refusal,) = refusals(library, logger, program)
    assert refusal.reason == "its parser takes no int8 operands of it"
    program = program_of("""(float[2, 1] x, int64[2, 1] i) => (float[2, 1] y) {
        y = ScatterElements<axis=0, reduction="add">(x, i, x)
    }""")
    with opened() as (library, logger, _):
        (refusal,) = refusals(library, logger, program)
    assert refusal.operator == "ScatterElements"  # of which the parser names the function only


HARD = """(float[4] x, int64[2, 1] i, float[2] u) => (float[4] y, float[4] z, float[4] w) {
    a = ScatterND<reduction="add">(x, i, u)
    b = Relu(a)
    c = ScatterND<reduction="max">(b, i, u)
    y = Neg(c)
    z = ScatterND<reduction="add">(x, i, u)
    w = Abs(x)
}"""


def test_all_operators_that_are_refused_are_found() -> None:
    program = program_of(HARD)
    before = [node.op_type for node in program.model.graph]
    for number, node in enumerate(program.model.graph):
        trace = f'File "model.py", line {number + 1}, in forward'
        node.metadata_props["pkg.torch.onnx.stack_trace"] = trace
    with opened() as (library, logger, _):
        assert parse(library, logger, program.to_bytes()) is None
        found = refusals(library, logger, program)
    assert [refusal.operator for refusal in found] == ["ScatterND"] * 3
    assert [refusal.location.line for refusal in found if refusal.location] == [1, 3, 5]
    assert all("reduction" in r.reason and "Assertion" not in r.reason for r in found)
    assert [node.op_type for node in program.model.graph] == before  # it works on a copy


def test_what_uses_a_result_of_unknown_type_is_not_tried() -> None:
    program = program_of(HARD)
    program.model.graph[0].outputs[0].shape = None
    for number, node in enumerate(program.model.graph):
        trace = f'File "model.py", line {number + 1}, in forward'
        node.metadata_props["pkg.torch.onnx.stack_trace"] = trace
    with opened() as (library, logger, _):
        found = refusals(library, logger, program)
    assert [refusal.location.line for refusal in found if refusal.location] == [1, 5]


def test_a_model_that_is_taken_has_no_refusals() -> None:
    with opened() as (library, logger, _):
        assert refusals(library, logger, program_of(RELU)) == []


def test_operators_are_counted_by_what_they_come_from() -> None:
    program = program_of("(float[2] x) => (float[2] y) { a = Neg(x) b = Abs(a) y = Neg(b) }")
    for node in [*program.model.graph][:2]:  # two nodes of one operator of torch
        node.metadata_props["pkg.torch.onnx.fx_node"] = "%a [target=torch.ops.aten.gelu.default]"
    assert operators_of(program) == {"aten.gelu.default": 1, "Neg": 1}


def test_a_node_without_notes_is_called_by_its_own_name() -> None:
    node = onnx_ir.node("Relu", [])
    assert (operator_of(node), location_of_onnx_node(node)) == ("Relu", None)
    assert (operator_of(None), location_of_onnx_node(None)) == ("the model", None)


def test_the_error_names_each_operator_once_or_what_was_logged() -> None:
    refused = [Refusal("aten.a", "one", None), Refusal("aten.a", "two", None)]
    error = unsupported("main", refused, Log())
    assert error.operators == ("aten.a",)
    assert "one" in str(error) and "two" in str(error)
    log = Log()
    log.lines.append("ERROR: said by the parser")
    assert str(unsupported("main", [], log)).startswith(
        "main(): TensorRT cannot take said by the parser; write it with other operators"
    )
    assert "no reason was given" in str(unsupported("main", [], Log()))
