"""Sizes in MLIR types: dynamic ones are MLIR's own number, and `?` in text."""

from __future__ import annotations

import pytest
from iree.compiler.ir import Context, Location, RankedTensorType, Type

from pelton.aot.procedural.values.sizes import DYNAMIC, is_dynamic, render_shape


def test_dynamic_is_the_number_of_mlir() -> None:
    with Context(), Location.unknown():
        parsed = Type.parse("tensor<?x0x1x7xf32>")
        assert isinstance(parsed, RankedTensorType)
        assert [is_dynamic(size) for size in parsed.shape] == [True, False, False, False]
        assert RankedTensorType.get([DYNAMIC, 0, 1, 7], Type.parse("f32")) == parsed


def test_minus_one_is_not_dynamic() -> None:
    assert not is_dynamic(-1)


@pytest.mark.parametrize(
    ("shape", "text"), [([], ""), ([0], "0"), ([DYNAMIC], "?"), ([2, DYNAMIC, 1], "2, ?, 1")]
)
def test_shapes_as_text(shape: list[int], text: str) -> None:
    assert render_shape(shape) == text
