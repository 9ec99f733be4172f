"""Archive layout: shapes, overlaps and element types that a format cannot store."""

from __future__ import annotations

from typing import Any

import pytest

from pelton.runtime.archive.layout import refuse_unstorable, require_disjoint, require_shape
from pelton.runtime.errors import ArtifactError, ParameterError

Span = tuple[int, int, str]


@pytest.mark.parametrize("shape", [[], [0], [2, 3], [1] * 32, [1 << 57]])
def test_shape_of_a_file_is_accepted(shape: list[int]) -> None:
    assert require_shape("w", shape) == tuple(shape)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (None, "'w' has shape None, which is not a list of sizes"),
        ("23", "'w' has shape '23', which is not a list of sizes"),
        ([2, -1], "not a list of sizes"),
        ([True], "not a list of sizes"),
        ([2.0], "not a list of sizes"),
        ([1] * 33, "'w' has 33 dimensions"),
        ([1 << 58], "more than memory holds"),
        ([1 << 30, 0, 1 << 30], "more than memory holds"),
        (["x" * 1000], "not a list of sizes"),
    ],
)
def test_other_shapes_are_refused(shape: Any, message: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        require_shape("w", shape)
    assert message in str(caught.value) and len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "spans",
    [
        [],
        [(0, 4, "a"), (4, 8, "b")],
        [(4, 8, "b"), (0, 4, "a")],
        [(0, 4, "a"), (0, 4, "tied")],
        [(0, 8, "a"), (3, 3, "empty")],
    ],
)
def test_disjoint_and_tied_contents_are_accepted(spans: list[Span]) -> None:
    require_disjoint(spans)


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 5, "a"), (4, 8, "b")],
        [(0, 4, "a"), (0, 5, "b")],
        [(0, 9, "a"), (2, 3, "b")],
        [(0, 4, "a"), (0, 4, "tied"), (3, 5, "b")],
    ],
)
def test_overlapping_contents_are_refused(spans: list[Span]) -> None:
    with pytest.raises(ArtifactError, match=r"the contents of '.*' and 'b' overlap"):
        require_disjoint(spans)


def test_parameters_that_a_format_cannot_store_are_named() -> None:
    refuse_unstorable(".irpa", [])
    with pytest.raises(ParameterError) as caught:
        refuse_unstorable(".irpa", ["a (Q4_0 32)", "b (Q8_0 32)"])
    assert str(caught.value) == (
        "a .irpa file cannot hold the element type of: a (Q4_0 32), b (Q8_0 32); convert them, or "
        "choose another format"
    )
