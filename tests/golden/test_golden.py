"""Files that earlier versions wrote are read, or refused with both versions."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pelton import aot, runtime
from pelton.runtime.artifacts.vmfb import read_info
from pelton.runtime.errors import DeviceError

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if path.is_dir() and path.name[0].isdigit())


@pytest.fixture(params=VERSIONS)
def folder(request: pytest.FixtureRequest) -> Path:
    return HERE / str(request.param)


def check(executable: runtime.Executable) -> None:
    x = np.ones((3, 2), np.float32)
    result = executable(x)
    assert result["y"].tolist() == [[6, 10, 14]] * 3
    assert executable(x)["calls"].tolist() == [2]
    with pytest.raises(runtime.SignatureError, match=r"outside its range 1\.\.8"):
        executable(np.ones((9, 2), np.float32))


def test_there_are_files_of_the_first_version() -> None:
    assert "0.1.0" in VERSIONS


def test_an_artifact_says_what_made_it(folder: Path) -> None:
    versions = read_info(folder / "net.vmfb").versions
    assert versions["pelton"] == folder.name
    assert versions["iree-base-compiler"]
    signature = aot.export(folder / "net.mlirbc").signatures["main"]
    assert signature.producer["pelton"] == folder.name
    assert {"torch", "iree-base-compiler"} <= set(signature.producer)


@pytest.mark.parametrize("archive", ["net.irpa", "net.safetensors"])
def test_an_artifact_is_loaded_with_its_weights(folder: Path, archive: str) -> None:
    try:
        executable = runtime.load(folder / "net.vmfb", parameters=folder / archive)
    except DeviceError as error:
        pytest.skip(str(error))  # compiled for another kind of machine
    check(executable)


@pytest.mark.parametrize("name", ["net.mlirbc", "net.mlir"])
def test_a_module_is_compiled(folder: Path, name: str, tmp_path: Path) -> None:
    aot.export(folder / name).compile(tmp_path / "net.vmfb")
    check(runtime.load(tmp_path / "net.vmfb", parameters=folder / "net.irpa"))


def test_a_module_is_run_by_torch(folder: Path) -> None:
    import torch

    program = aot.to_torch(folder / "net.mlirbc", parameters=folder / "net.irpa")
    assert program(torch.ones(1, 2))["y"].tolist() == [[6, 10, 14]]


def test_an_artifact_of_a_later_format_is_refused_with_both(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "later.vmfb"
    with zipfile.ZipFile(folder / "net.vmfb") as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name == "pelton.json":
                facts = json.loads(data)
                data = json.dumps({**facts, "format": 99}).encode()
            new.writestr(name, data)
    with pytest.raises(runtime.ArtifactError) as caught:
        runtime.load(path)
    assert str(caught.value) == (
        f"{path}: format 99 of pelton.json, this version of Pelton reads format 1; "
        "compile the module again"
    )
