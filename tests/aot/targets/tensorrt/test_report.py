"""Dry-run reports: what is refused, and the memory at the largest sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

pytest.importorskip("tensorrt_rtx")
pytest.importorskip("onnxscript")

from pelton.aot.targets.tensorrt import report
from pelton.aot.targets.tensorrt.functions import Parsed, parsed
from pelton.aot.targets.tensorrt.library import open_library
from pelton.aot.targets.tensorrt.network import Network, parse
from pelton.aot.targets.tensorrt.options import TensorRTOptions
from pelton.runtime.artifacts.entry_points import Bounds, EngineProfile, Port
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.sizes import Dim
from tests.aot.raising.texts import body, source_of
from tests.aot.targets.tensorrt.models import opened, program_of

FLOAT = DTYPES["float32"]


def port(name: str, *shape: Any, host: bool = False) -> Port:
    return Port(name, "user", name, FLOAT, shape, host=host)


def profile(name: str, **inputs: tuple[int, ...]) -> EngineProfile:
    return EngineProfile(name, {key: Bounds((1,), (1,), shape) for key, shape in inputs.items()})


def test_the_largest_shape_is_that_of_all_profiles_and_a_fixed_one_is_its_own() -> None:
    profiles = [profile("a", x=(9, 2), n=(4,)), profile("b", x=(4, 5), n=(4,))]
    inputs = [port("x", "N", "M"), port("fixed", 3, 4), port("n", host=True), port("y", "K")]
    assert report._largest_shapes(inputs, profiles) == {
        "x": (4, 5), "fixed": (3, 4), "n": (), "y": (),
    }  # fmt: skip
    assert report._largest_shapes([port("x", 2)], []) == {"x": (2,)}


CHAIN = """(float[N, 2] x) => (float[N, 2] y) {
    a = Relu(x)
    b = Neg(a)
    c = Add(a, b)
    y = Abs(c)
}"""


def test_values_have_the_bytes_of_their_shapes_at_given_sizes() -> None:
    found = report._bytes_of_values(program_of(CHAIN), {"x": (5, 2)})
    assert {name: found[name] for name in "xabcy"} == dict.fromkeys("xabcy", 40)
    assert report._bytes_of_values(program_of(CHAIN), {"x": (0, 2)})["a"] == 0


def test_values_of_unknown_shape_are_left_out() -> None:
    program = program_of("(float[4] x) => (int64[1, M] y) { y = NonZero(x) }")
    found = report._bytes_of_values(program, {"x": (4,)})
    assert found["x"] == 16
    assert "y" not in found


def test_the_model_is_left_as_it_was() -> None:
    program = program_of(CHAIN)
    before = program.to_bytes()
    report._bytes_of_values(program, {"x": (5, 2)})
    assert program.to_bytes() == before


def test_the_most_that_is_alive_at_one_time_is_counted_without_the_results() -> None:
    values = {"x": 1000, "a": 1, "b": 10, "c": 100, "y": 5000}
    assert report._most_alive(program_of(CHAIN), values) == 111  # a and b are read to make c
    assert (
        report._most_alive(program_of("(float[2] x) => (float[2] y) { y = Neg(x) }"), values) == 0
    )


@pytest.fixture
def function() -> Iterator[Parsed]:
    program = program_of(
        """(float[N, 2] x, float[2] s, float[2] w) => (float[N, 2] y) {
            a = Add(x, s)
            b = Mul(a, w)
            y = Neg(b)
        }""",
        Dim("N", 1, 8, 4),
        state={"s": torch.zeros(2)},
        parameters={"w": torch.zeros(2)},
    )
    with opened() as (library, logger, _):
        network = parse(library, logger, program.to_bytes())
        assert isinstance(network, Network)
        yield parsed(program, network, TensorRTOptions())


def test_memory_is_told_by_purpose(function: Parsed) -> None:
    assert report._memory_bytes(function) == {
        "weights": 8, "inputs and outputs": 2 * 8 * 8, "state": 8, "activations": 2 * 8 * 8,
    }  # fmt: skip


def test_profiles_are_told_with_their_ranges(function: Parsed) -> None:
    assert [report._described(each) for each in function.profiles] == ["default: x [1, 2]..[8, 2]"]
    assert report._described(EngineProfile("one", {})) == "one: fixed sizes"


def test_an_operator_without_a_form_in_onnx_is_a_refusal() -> None:
    source = source_of(body("%a = math.erf %x : f32 return %a : f32", "%x: f32", "f32"))
    found = report.report_on(open_library("rtx"), source, "main", TensorRTOptions())
    assert not found.supported
    assert [(r.operator, r.reason) for r in found.refusals] == [
        ("math.erf", "it has no form in ONNX")
    ]
    assert found.operators == {"math.erf": 1}
