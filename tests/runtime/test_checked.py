"""Checks of data from files, and the decoder of JSON by annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from pelton.runtime.checked import (
    JSON_NAME,
    Decoder,
    align,
    require,
    require_json,
    require_unique,
)
from pelton.runtime.errors import ArtifactError

Even = Annotated[int, "even"]


@dataclass(frozen=True)
class Point:
    x: int
    y: int


@dataclass(frozen=True)
class Thing:
    name: str
    kind: Literal["small", "large"]
    flag: bool
    ratio: float
    value: bool | int | str | None
    pair: tuple[int, str]
    many: tuple[Point, ...]
    by_name: Mapping[str, tuple[int, ...]]
    by_kind: dict[Literal["a", "b"], Any]
    place: Point | None
    even: Even
    is_scalar: bool = field(default=False, metadata={JSON_NAME: "number"})


def even(data: Any) -> int:
    if type(data) is not int or data % 2:
        raise ValueError(f"{data!r} is not even")
    return data


DECODER = Decoder(rows=frozenset([Point]), hooks={Even: even})
JSON: dict[str, Any] = {
    "name": "n",
    "kind": "small",
    "flag": True,
    "ratio": 1,
    "value": None,
    "pair": [1, "a"],
    "many": [[1, 2], [3, 4]],
    "by_name": {"x": [1, 2], "y": []},
    "by_kind": {"b": {"any": [1]}},
    "place": None,
    "even": 4,
    "number": True,
}


def test_values_of_every_annotation_are_decoded() -> None:
    assert DECODER.decode(Thing, JSON, "thing") == Thing(
        "n", "small", True, 1, None, (1, "a"), (Point(1, 2), Point(3, 4)),
        {"x": (1, 2), "y": ()}, {"b": {"any": [1]}}, None, 4, True,
    )  # fmt: skip
    assert DECODER.decode(Thing, {**JSON, "place": [5, 6]}, "thing").place == Point(5, 6)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": 3}, "thing.name is 3, expected a string"),
        ({"name": None}, "thing.name is None, expected a string"),
        ({"kind": "tiny"}, "thing.kind is 'tiny', expected one of 'small', 'large'"),
        ({"kind": ["small"]}, "thing.kind is ['small'], expected one of 'small', 'large'"),
        ({"flag": 1}, "thing.flag is 1, expected true or false"),
        ({"ratio": True}, "thing.ratio is True, expected a number"),
        ({"ratio": "1"}, "thing.ratio is '1', expected a number"),
        ({"value": 1.5}, "thing.value is 1.5, expected true or false or an integer or a string"),
        ({"pair": [1]}, "thing.pair is [1], expected an array of 2"),
        ({"pair": ["a", 1]}, "thing.pair[0] is 'a', expected an integer"),
        ({"pair": {}}, "thing.pair is {}, expected an array of 2"),
        ({"many": "ab"}, "thing.many is 'ab', expected an array"),
        ({"many": [[1, 2], [3]]}, "thing.many[1] is [3], expected an array of x, y"),
        ({"many": [{"x": 1, "y": 2}]}, "expected an array of x, y"),
        ({"many": [[1, True]]}, "thing.many[0].y is True, expected an integer"),
        ({"by_name": []}, "thing.by_name is [], expected an object"),
        ({"by_name": {"x": [0.5]}}, "thing.by_name['x'][0] is 0.5, expected an integer"),
        ({"by_kind": {"c": 1}}, "thing.by_kind['c'] is 'c', expected one of 'a', 'b'"),
        ({"place": 1}, "thing.place is 1, expected an array of x, y"),
        ({"even": 3}, "thing.even: 3 is not even"),
        ({"is_scalar": True}, "thing has unknown 'is_scalar'"),
        ({"name": "x" * 200}, ""),
    ],
)
def test_value_that_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    if not message:
        assert DECODER.decode(Thing, {**JSON, **changes}, "thing").name == "x" * 200
        return
    with pytest.raises(ArtifactError) as caught:
        DECODER.decode(Thing, {**JSON, **changes}, "thing")
    assert message in str(caught.value)


def test_missing_fields_are_named_together() -> None:
    without = {name: value for name, value in JSON.items() if name not in ("flag", "number")}
    with pytest.raises(ArtifactError) as caught:
        DECODER.decode(Thing, without, "thing")
    assert str(caught.value) == "thing lacks 'flag', 'number'"


@pytest.mark.parametrize("data", [None, 3, "thing", [], [1, 2]])
def test_object_is_expected_for_a_dataclass_that_is_no_row(data: Any) -> None:
    with pytest.raises(ArtifactError, match="expected an object"):
        DECODER.decode(Thing, data, "thing")


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(ArtifactError) as caught:
        DECODER.decode(Thing, {**JSON, "flag": "x" * 10_000}, "thing")
    assert len(str(caught.value)) < 200


def test_endless_recursion_of_a_hook_is_an_error_of_the_file() -> None:
    def recursive(data: Any) -> int:
        return recursive(data)

    with pytest.raises(ArtifactError, match=r"^x: maximum recursion depth exceeded"):
        Decoder(hooks={int: recursive}).decode(int, 1, "x")


# Other checks


@pytest.mark.parametrize(
    ("offset", "alignment", "aligned"), [(0, 64, 0), (1, 64, 64), (64, 64, 64), (65, 1, 65)]
)
def test_offsets_are_aligned_upwards(offset: int, alignment: int, aligned: int) -> None:
    assert align(offset, alignment) == aligned


def test_broken_rule_is_the_message() -> None:
    require(True, "fine")
    with pytest.raises(ArtifactError, match=r"^it is odd$"):
        require(False, "it is odd")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "the header is not JSON: "),
        (b"\xff", "the header is not JSON: 'utf-8' codec"),
        (b"[" * 100_000, "the header is not JSON: "),
        (b"[]", "the header is not a JSON object"),
        (b'{"a": 1, "a": 2}', "these names occur more than once: 'a'"),
        (b'{"x": {"a": 1, "a": 2}}', "these names occur more than once: 'a'"),
    ],
)
def test_text_that_is_no_json_object_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        require_json("header", text)
    assert str(caught.value).startswith(message)


def test_duplicates_are_listed() -> None:
    require_unique(["a", "b"])
    with pytest.raises(ArtifactError, match=r"^these names occur more than once: 'a', 'c'$"):
        require_unique("abacc")
