"""Descriptions of files: what each kind says of itself, in types that JSON has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pelton.cli.describe import describe, target_text
from pelton.runtime.archive import write_archive
from pelton.runtime.archive.parameter import blob_of, parameter_of
from pelton.runtime.artifacts.entry_points import Bounds, EngineProfile, EntryPoint, Port
from pelton.runtime.artifacts.manifest import Manifest
from pelton.runtime.artifacts.trtm import write_trtm
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import (
    ConstantSpec,
    Parameter,
    ScalarSpec,
    Signature,
    TensorSpec,
)
from pelton.runtime.call.sizes import Dim
from pelton.runtime.errors import ArtifactError

F32 = DTYPES["float32"]
SIGNATURE = Signature(
    "main",
    tuple(Parameter(name, "POSITIONAL_OR_KEYWORD", i) for i, name in enumerate("xnk")),
    (TensorSpec(F32, ("n", 4)), ScalarSpec("int"), ConstantSpec("fixed")),
    0,
    (TensorSpec(F32, (["*", "n", 2], "?")),),
    dims=(Dim("n", 1, 8, 4),),
    mutates=("total",),
    location="net.py:3",
    producer={"pelton": "0.1.0"},
)


def module_text(*functions: str) -> str:
    return "\n".join(
        [
            'util.global private @w = #flow.parameter.named<"model"::"w"> : tensor<2x3xf32>',
            *functions,
        ]
    )


def signed(signature: Signature, name: str) -> str:
    text = json.dumps(signature.to_json())
    reflection = f'{{iree.reflection = {{"pelton.signature" = {text}}}}}'
    return f"func.func @{name}() attributes {reflection} {{ return }}"


def test_a_module_has_signatures_state_and_parameters(tmp_path: Path) -> None:
    state = Signature("pelton.state.get.total", (), (), 0, (ScalarSpec("int"),))
    setter = Signature("pelton.state.set.total", (), (), None, ())
    path = tmp_path / "m.mlir"
    path.write_text(
        module_text(
            signed(SIGNATURE, "main"),
            signed(state, "pelton.state.get.total"),
            signed(setter, "pelton.state.set.total"),
        )
    )
    found = describe(path)
    assert [s.name for s in found.signatures] == ["main"]
    assert found.state == {"total": ScalarSpec("int")}
    (line,) = found.parameters["model"]
    assert (line.name, line.dtype, line.shape, line.nbytes) == ("w", "float32", (2, 3), 24)
    assert found.versions == {"pelton": "0.1.0"}
    assert (found.target, target_text(found)) == ({}, "")


def test_a_description_is_what_json_has(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text(module_text(signed(SIGNATURE, "main")))
    told = json.loads(json.dumps(describe(path).to_dict()))
    assert (told["file"], told["nbytes"]) == (str(path), path.stat().st_size)
    (function,) = told["functions"]
    assert function["inputs"] == [
        {"name": "x", "dtype": "float32", "shape": ["n", 4]},
        {"name": "n", "number": "int"},
        {"name": "k", "constant": "fixed"},
    ]
    assert function["results"] == [{"dtype": "float32", "shape": ["n*2", "?"]}]
    assert function["dims"] == [{"name": "n", "min": 1, "opt": 4, "max": 8}]
    assert (function["mutates"], function["location"]) == (["total"], "net.py:3")
    assert told["parameters"]["model"][0]["shape"] == [2, 3]


@pytest.mark.parametrize("suffix", ["irpa", "safetensors"])
def test_an_archive_has_its_parameters_without_a_scope(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    write_archive(path, [parameter_of("w", np.zeros((2, 0), np.int16))])
    found = describe(path)
    (line,) = found.parameters[""]
    assert (line.name, line.dtype, line.shape, line.nbytes) == ("w", "int16", (2, 0), 0)
    assert found.signatures == []


def test_a_blob_and_an_empty_archive_are_described(tmp_path: Path) -> None:
    write_archive(tmp_path / "blob.irpa", [blob_of("raw", b"12345")])
    (line,) = describe(tmp_path / "blob.irpa").parameters[""]
    assert (line.dtype, line.nbytes) == ("blob", 5)
    write_archive(tmp_path / "empty.irpa", [])
    assert describe(tmp_path / "empty.irpa").parameters == {"": []}


def port(name: str, kind: Any, origin: str, *shape: Any, **options: Any) -> Port:
    return Port(name, kind, origin, F32, shape, **options)


def test_a_package_has_engines_state_and_weights_by_scope(tmp_path: Path) -> None:
    profile = EngineProfile("default", {"x": Bounds((1, 4), (4, 4), (8, 4))})
    entry = EntryPoint(
        Signature(
            "main",
            (Parameter("x", "POSITIONAL_OR_KEYWORD", 0),),
            (TensorSpec(F32, ("n", 4)),),
            None,
            (),
            dims=(Dim("n", 1, 8, 4),),
        ),
        (
            port("x", "user", "x", "n", 4),
            port("w", "parameter", "model::w", 2, 3),
            port("c", "parameter", "constant", 5),
            port("s", "state", "total", 4),
            port("k", "state", "count", is_scalar=True),
        ),
        (),
        (profile,),
        {"engine": "engines/main.engine"},
        {"layers": 3},
        ("said",),
    )
    manifest = Manifest("rtx", "1.7", ("8.6", "8.9"), (entry,), {"level": 3}, {"torch": "2"})
    members: dict[str, Any] = {"engines/main.engine": b"12345"}
    for name, values in {"state": {"total": np.zeros(4, np.float32), "count": np.float32(1)},
                         "parameters": {"model::w": np.zeros((2, 3), np.float32),
                                        "constant": np.zeros(5, np.float32)}}.items():  # fmt: skip
        archive = tmp_path / f"{name}.safetensors"
        write_archive(archive, [parameter_of(n, np.asarray(v)) for n, v in values.items()])
        members[archive.name] = archive
    write_trtm(tmp_path / "m.trtm", manifest, members)
    found = describe(tmp_path / "m.trtm")
    assert found.target == {"backend": "tensorrt-rtx", "version": "1.7", "gpu": "sm_86 sm_89"}
    assert found.versions == {"torch": "2", "tensorrt-rtx": "1.7"}
    assert found.state == {"total": TensorSpec(F32, (4,)), "count": ScalarSpec("float")}
    lines = {
        scope: [(line.name, line.nbytes) for line in lines]
        for scope, lines in found.parameters.items()
    }
    assert lines == {"model": [("w", 24)], "": [("constant", 20)]}
    engine = json.loads(json.dumps(found.to_dict()))["engines"]["main"]
    assert engine["members"]["engine"] == {"name": "engines/main.engine", "nbytes": 5}
    assert engine["profiles"][0]["inputs"]["x"] == {"min": [1, 4], "opt": [4, 4], "max": [8, 4]}
    assert (engine["report"], engine["notes"]) == ({"layers": 3}, ["said"])


@pytest.mark.parametrize(
    "content", [b"", b"\x00\x01\x02", b"hello"], ids=["empty", "bytes", "text"]
)
def test_a_file_of_another_kind_is_refused_with_those_that_are_known(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "m.bin"
    path.write_bytes(content)
    with pytest.raises(ArtifactError, match=r"m\.bin"):
        describe(path)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no such file"):
        describe(tmp_path / "none.vmfb")
