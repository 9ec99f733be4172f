"""Templates of text bodies: fields, constants, and errors with their line."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.lowering.custom.operator import CustomOp
from pelton.aot.lowering.custom.template import (
    TensorForm,
    fill_in,
    literal,
    names_in,
    quoted,
    size,
)

OP = CustomOp("demo::op", torch.ops.aten.relu.default._schema, "", None, None)
FORM = TensorForm("x", "f32", ("m", "n"), "affine_map<(d0, d1) -> (d0, d1)>")


def test_fields_of_a_tensor() -> None:
    assert FORM.fields() == {
        "x": "tensor<?x?xf32>",
        "x.element": "f32",
        "x.rank": "2",
        "x.sizes": "%size.m, %size.n",
        "x.map": "affine_map<(d0, d1) -> (d0, d1)>",
    }


def test_fields_of_a_tensor_of_rank_zero() -> None:
    fields = TensorForm("result", "i1", (), "affine_map<() -> ()>").fields()
    assert (fields["result"], fields["result.sizes"]) == ("tensor<i1>", "")
    assert size("m") == "%size.m"


@pytest.mark.parametrize(
    "text, names",
    [
        ("", set()),
        ("%0 = a $x, ${y.map} : $x", {"x", "y.map"}),
        ("$$x and $$", set()),
        ("$x.map", {"x"}),
        ("${x.map.more} $1 $", set()),
    ],
)
def test_names_in_templates(text: str, names: set[str]) -> None:
    assert names_in(text) == names


def test_fields_are_filled_in() -> None:
    text = fill_in(OP, "a $x\n${x.element} $$ $n", {**FORM.fields(), "n": "3"})
    assert text == "a tensor<?x?xf32>\nf32 $ 3"


@pytest.mark.parametrize(
    "text, message",
    [
        ("a\nb $y : c", r"op: line 2 of its body has no field \$y; there are: \$x, \$\{x.map\}"),
        ("${x.size}", r"line 1 of its body has no field \$x.size"),
        ("\n\n a $ b", r"(?s)line 3 of its body has a '\$' that begins no field; .* 3 \| a \$ b"),
        ("${}", "line 1 of its body has a"),
        ("a $", "line 1 of its body has a"),
    ],
)
def test_unknown_fields_and_lone_signs_are_refused(text: str, message: str) -> None:
    with pytest.raises(aot.ExportError, match=message):
        fill_in(OP, text, {"x": "", "x.map": ""})


@pytest.mark.parametrize(
    "line, expected", [(0, ""), (1, "  1 | a"), (2, "  2 | b c"), (3, ""), (-1, "")]
)
def test_lines_are_quoted_where_there_are_such(line: int, expected: str) -> None:
    assert quoted("a\n  b c", line) == expected


@pytest.mark.parametrize(
    "value, text",
    [
        (True, "true"), (False, "false"), (0, "0"), (-3, "-3"), (None, "none"), ("tanh", "tanh"),
        (1.0, "1.0000000000000000e+00"), (0.1, "1.0000000000000001e-01"), ([], "[]"),
        ((1, 2.5, True), "[1, 2.5000000000000000e+00, true]"),
    ],
)  # fmt: skip
def test_constants_are_written_as_mlir_reads_them(value: Any, text: str) -> None:
    assert literal(value) == text


def test_floats_are_written_without_loss() -> None:
    for value in (0.1, 1 / 3, 5e-324, 1.7976931348623157e308, -0.0):
        assert float(literal(value)).hex() == value.hex()
