"""TensorRT packages on the command line: inspected, unpacked and run."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from pelton import aot
from pelton.cli import main
from pelton.runtime.artifacts.trtm import open_trtm

from ..packages import write_package
from ..runtime.programs import Counter, rows

torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = aot.export(Counter(), args=(torch.zeros(4),))
    return write_package(out, tmp_path_factory.mktemp("counter"))


@pytest.fixture(scope="module")
def sized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = aot.export(lambda x: x * 2, args=[rows(1, 8)])
    return write_package(out, tmp_path_factory.mktemp("sized"))


def test_package_shows_its_engines(sized: Path, capsys: Capture) -> None:
    assert main(["inspect", str(sized)]) == 0
    text = capsys.readouterr().out
    assert f"{sized}: TensorRT package (.trtm)" in text
    assert "  target    tensorrt-rtx (1.7.1.116, sm_86 sm_89)\n" in text
    assert "  options   optimization_level=3\n" in text
    assert "    engine: engines/main.engine, 14 bytes\n" in text
    assert "    profile default: x 1x4..2x4..8x4\n" in text


def test_package_shows_its_state(counter: Path, capsys: Capture) -> None:
    assert main(["inspect", str(counter)]) == 0
    text = capsys.readouterr().out
    assert "  total: float32[4]\n" in text and "  calls: int64[]\n" in text


def test_json_of_a_package(sized: Path, capsys: Capture) -> None:
    assert main(["inspect", str(sized), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["target"] == {
        "backend": "tensorrt-rtx", "version": "1.7.1.116", "gpu": "sm_86 sm_89",
    }  # fmt: skip
    engine = found["engines"]["main"]
    assert engine["members"]["engine"] == {"name": "engines/main.engine", "nbytes": 14}
    (profile,) = engine["profiles"]
    assert profile["inputs"]["x"] == {"min": [1, 4], "opt": [2, 4], "max": [8, 4]}


def test_package_is_unpacked_into_plain_files(counter: Path, tmp_path: Path) -> None:
    folder = tmp_path / "plain"
    assert main(["unpack", str(counter), "-o", str(folder)]) == 0
    package = open_trtm(counter)
    files = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert files == {"manifest.json", *package.manifest.members}
    assert (folder / "engines/main.engine").read_bytes() == b"engine of main"
    onnx.checker.check_model(folder / "reference/main.onnx")
    assert json.loads((folder / "manifest.json").read_text())["flavor"] == "rtx"


def test_folder_that_is_not_new_is_refused(counter: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "mine").write_text("x")
    assert main(["unpack", str(counter), "-o", str(tmp_path)]) == 1
    assert "it exists already; give the name of a new one" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_damaged_package_leaves_nothing(counter: Path, tmp_path: Path, capsys: Capture) -> None:
    data = bytearray(counter.read_bytes())
    data[data.index(b"engine of main")] ^= 1
    (tmp_path / "m.trtm").write_bytes(data)
    assert main(["unpack", str(tmp_path / "m.trtm"), "-o", str(tmp_path / "plain")]) == 1
    assert "the SHA-256 of engines/main.engine is" in capsys.readouterr().err
    assert [p.name for p in tmp_path.iterdir()] == ["m.trtm"]


def test_package_runs_on_the_reference_device(counter: Path, tmp_path: Path) -> None:
    output = tmp_path / "y.npy"
    arguments = ["--device", "reference", "--input", "4xf32=1,2,3,4", "--output", f"@{output}"]
    assert main(["run", str(counter), *arguments]) == 0
    np.testing.assert_array_equal(np.load(output), np.float32([1, 2, 3, 4]))


def test_package_without_a_gpu_is_one_line(counter: Path, capsys: Capture) -> None:
    assert main(["run", str(counter), "--input", "4xf32=1"]) == 1
    assert "device='reference' runs its ONNX graphs" in capsys.readouterr().err
