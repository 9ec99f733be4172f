"""Entry points on their way to engines: networks, ports, members, and the report of a build."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

pytest.importorskip("tensorrt_rtx")
pytest.importorskip("onnxscript")

from pelton.aot.spec.errors import DynamicShapeError
from pelton.aot.targets.tensorrt.engine import BuildSettings
from pelton.aot.targets.tensorrt.functions import built, network_of, parameters_by_origin, parsed
from pelton.aot.targets.tensorrt.network import Network
from pelton.aot.targets.tensorrt.options import TensorRTOptions
from pelton.runtime.artifacts.entry_points import Bounds
from pelton.runtime.call.sizes import Dim
from tests.aot.targets.tensorrt.models import opened, program_of

N = Dim("N", 1, 8, 4)
STATEFUL = """(float[N, 2] x, float[2] s, float[2] w) => (float[N, 2] y) {
    a = Add(x, s)
    y = Mul(a, w)
}"""
GIVEN = {"state": {"s": torch.ones(2)}, "parameters": {"w": torch.full((2,), 3.0)}}


def test_an_entry_point_is_built_with_the_members_that_were_asked_for(tmp_path: Path) -> None:
    program = program_of(STATEFUL, N, **GIVEN)
    options = TensorRTOptions(optimization_level=0, layer_info=True, reference=True)
    with opened() as (library, logger, log):
        network = network_of(library, (logger, log), program, tmp_path)
        assert isinstance(network, Network)
        function = parsed(program, network, options)
        made = built(library, (logger, log), function, BuildSettings(options, ("8.9",)), tmp_path)
    assert set(made.members) == {"engines/main.engine", "layers/main.json", "reference/main.onnx"}
    assert all(path.is_file() for path in made.members.values())
    assert made.entry_point.members == {
        "engine": "engines/main.engine", "layers": "layers/main.json",
        "reference": "reference/main.onnx",
    }  # fmt: skip
    assert (
        made.entry_point.report["engine_bytes"]
        == made.members["engines/main.engine"].stat().st_size
    )
    assert made.entry_point.report["layers"] == len(network.layers)
    layers = json.loads(made.members["layers/main.json"].read_text())["network"]
    assert len(layers) == len(network.layers)
    assert made.state["s"].tolist() == [1, 1]
    assert made.parameters["model::w"].tolist() == [3, 3]


def test_ports_and_profiles_are_those_of_the_network(tmp_path: Path) -> None:
    program = program_of(
        """(float[4] x, int64[1] n) => (float[M] y) {
            zero = Constant<value_ints=[0]>()
            y = Slice(x, zero, n)
        }"""
    )
    with opened() as (library, logger, log):
        network = network_of(library, (logger, log), program, tmp_path)
        assert isinstance(network, Network)
        found = {tensor for tensor in network.host_inputs}
    assert found == {"n"}
    program = program_of(STATEFUL, N, **GIVEN)
    with opened() as (library, logger, log):
        network = network_of(library, (logger, log), program, tmp_path)
        assert isinstance(network, Network)
        options = TensorRTOptions(profiles={"few": {"N": (1, 1, 2)}, "many": {"N": (3, 4, 8)}})
        function = parsed(program, network, options)
    assert [(p.name, p.kind, p.host) for p in function.inputs] == [
        ("x", "user", False), ("s", "state", False), ("w", "parameter", False),
    ]  # fmt: skip
    assert [(p.name, p.inputs["x"]) for p in function.profiles] == [
        ("few", Bounds((1, 2), (1, 2), (2, 2))), ("many", Bounds((3, 2), (4, 2), (8, 2))),
    ]  # fmt: skip


def test_a_dimension_without_a_bound_is_refused(tmp_path: Path) -> None:
    program = program_of(STATEFUL, Dim("N", 1), **GIVEN)
    with opened() as (library, logger, log):
        network = network_of(library, (logger, log), program, tmp_path)
        assert isinstance(network, Network)
        with pytest.raises(DynamicShapeError, match="N"):
            parsed(program, network, TensorRTOptions())


@pytest.mark.parametrize(
    ("text", "operator"),
    [
        ("(double[2] x) => (double[2] y) { y = Neg(x) }", "user input 'x'"),
        (
            """(float[4] x, int64[2, 1] i, float[2] u) => (float[4] y) {
                y = ScatterND<reduction="add">(x, i, u)
            }""",
            "ScatterND",
        ),
    ],
    ids=["type", "operator"],
)
def test_what_tensorrt_cannot_take_are_refusals(text: str, operator: str, tmp_path: Path) -> None:
    with opened() as (library, logger, log):
        found = network_of(library, (logger, log), program_of(text), tmp_path)
    assert isinstance(found, list)
    assert found[0].operator == operator


def test_weights_are_called_by_what_functions_share() -> None:
    assert [*parameters_by_origin(program_of(STATEFUL, N, **GIVEN))] == ["model::w"]
    assert parameters_by_origin(program_of("(float[2] x) => (float[2] y) { y = Neg(x) }")) == {}
