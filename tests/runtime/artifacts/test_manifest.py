"""Manifests: JSON round trips, and refusals of other JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from pelton.runtime.artifacts.entry_points import PARAMETERS, STATE, EntryPoint, member_name
from pelton.runtime.artifacts.manifest import FORMAT, Manifest
from pelton.runtime.errors import ArtifactError
from tests.runtime.manifests import entry_point, manifest, port

FULL = manifest(
    entry_point(report={"layers": 3, "seconds": 0.5}, notes=("a note",)),
    entry_point("second", members={"fallback": member_name("fallback", "second")}),
    options={"level": 3},
    versions={"pelton": "0.1.0"},
    notes=("general",),
)


def test_manifest_comes_back() -> None:
    assert Manifest.from_json(FULL.to_json().encode()) == FULL


def test_form_of_the_json() -> None:
    data = json.loads(FULL.to_json())
    assert list(data) == [
        "format", "flavor", "engine_version", "compute_capabilities", "functions", "options",
        "versions", "notes", "members",
    ]  # fmt: skip
    assert data["format"] == FORMAT == 1
    first = data["functions"][0]
    assert first["inputs"][1] == {
        "name": "k", "kind": "user", "origin": "k", "dtype": "int64", "shape": [], "number": True,
        "host": False,
    }  # fmt: skip
    assert first["profiles"] == [["default", {"x": [[1, 4], [2, 4], [8, 4]]}]]
    assert data["members"][STATE] == [1, FULL.members[STATE].sha256]


def test_shared_values_are_by_origin() -> None:
    weight = port("weight", (4,), "parameter", origin="model::weight")
    function = entry_point()
    with_weight = replace(function, inputs=(*function.inputs, weight))
    made = manifest(with_weight)
    assert list(made.state) == ["total"]
    assert made.parameters == {"model::weight": weight}
    with pytest.raises(ArtifactError, match=f"there is no {PARAMETERS} for its parameters"):
        made.check()


def changed(path: tuple[Any, ...], value: Any) -> bytes:
    """Return the JSON of a manifest with another value at a place; `...`: without the place."""
    data = inner = json.loads(FULL.to_json())
    for key in path[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return json.dumps(data).encode()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), 2, "the manifest has format 2, this version of Pelton reads format 1"),
        (("format",), ..., "the manifest has format None"),
        (("flavor",), "amd", "manifest.flavor is 'amd', expected one of 'rtx', 'tensorrt'"),
        (("notes",), ..., "manifest lacks 'notes'"),
        (("author",), "x", "manifest has unknown 'author'"),
        (("options",), [], "manifest.options is [], expected an object"),
        (("functions", 0, "notes"), [1], "manifest.functions[0].notes[0] is 1, expected a string"),
        (("functions", 0, "inputs", 0, "kind"), "x", "inputs[0].kind is 'x', expected one of"),
        (("functions", 0, "inputs", 0, "dtype"), "f", "inputs[0].dtype: unknown element type 'f'"),
        (("functions", 0, "inputs", 0, "shape"), ["n", None], "shape[1]: None is not a size"),
        (("functions", 0, "inputs", 0, "number"), 1, "inputs[0].number is 1, expected true or"),
        (("functions", 0, "inputs", 0, "is_scalar"), True, "inputs[0] has unknown 'is_scalar'"),
        (("functions", 0, "signature", "name"), 1, "functions[0].signature: not a signature: "),
        (("functions", 0, "signature"), [], "functions[0].signature: not a signature: "),
        (("functions", 0, "profiles", 0), ["p"], "profiles[0] is ['p'], expected an array of name"),
        (("functions", 0, "members"), {"engin": "x"}, "members['engin'] is 'engin', expected one"),
        (("members", "x"), [1.5, ""], "manifest.members['x'].nbytes is 1.5, expected an integer"),
        (("members", "x"), [1, "AB"], "the SHA-256 of x is 'AB', expected 64 hexadecimal digits"),
    ],
)
def test_damaged_json_is_refused(path: tuple[Any, ...], value: Any, message: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        Manifest.from_json(changed(path, value))
    assert message in str(caught.value)


@pytest.mark.parametrize("text", [b"", b"[]", b"\xff", b"[" * 5000, b'{"format": 1, "format": 1}'])
def test_text_that_is_no_manifest_is_refused(text: bytes) -> None:
    with pytest.raises(ArtifactError):
        Manifest.from_json(text)


@pytest.mark.parametrize("depth", [500, 900, 20_000])
def test_deep_sizes_are_read_or_refused(depth: int) -> None:
    deep = b'["+",' * depth + b'"n"' + b",1]" * depth
    text = changed(("functions", 0, "inputs", 0, "shape", 0), "DEEP").replace(b'"DEEP"', deep)
    try:
        Manifest.from_json(text)
    except ArtifactError:
        assert depth > 500


@pytest.mark.parametrize(
    ("functions", "message"),
    [
        ((), "the package has no entry point"),
        ((entry_point(), entry_point()), "these names occur more than once: 'main'"),
        ((entry_point(members={"engine": "other"}),), "has no member other (engine)"),
    ],
)
def test_inconsistent_functions_are_refused(
    functions: tuple[EntryPoint, ...], message: str
) -> None:
    with pytest.raises(ArtifactError) as caught:
        replace(manifest(), functions=functions).check()
    assert message in str(caught.value)
