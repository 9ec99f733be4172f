from pathlib import Path

import numpy as np
import pytest

from pelton.aot import export as aot_export
from pelton.cli import main
from pelton.runtime.archive import open_archive


def exported(path: str, name: str = "main") -> str:
    return str(aot_export(path).signatures[name])


@pytest.mark.parametrize(
    ("program", "inputs", "signature"),
    [
        ("make_net", ["b=1..8x4xf32"], "main(x: float32[b, 4]) -> (float32[b, 2]) where b=1..8"),
        ("Net", ["2x4xf32"], "main(x: float32[2, 4]) -> (float32[2, 2])"),
        ("net", ["2x4xf32"], "main(x: float32[2, 4]) -> (float32[2, 2])"),
        ("net.linear", ["2x4xf32"], "main(input: float32[2, 4]) -> (float32[2, 2])"),
        ("make_program", [], "main(x: float32[2, 4]) -> (float32[2, 2])"),
        ("ones", [], "main(value: 1) -> (bfloat16[2])"),
        (
            "matmul",
            ["m=1..4x3xf32", "b:3x?xf32"],
            "main(a: float32[m, 3], b: float32[3, b_dim1]) -> (float32[m, b_dim1]) "
            "where m=1..4, b_dim1=0..",
        ),
        ("scale", ["?xf32", "3.0"], "main(x: float32[x_dim0], factor: 3.0, shift: 0)"),
        ("scale", ["2xf32", "shift:1..4..9"], "main(x: float32[2], factor: 2.0, shift: int"),
    ],
)
def test_kinds_of_programs_and_inputs(
    program: str, inputs: list[str], signature: str, folder: Path
) -> None:
    arguments = [argument for text in inputs for argument in ("--input", text)]
    assert main(["export", f"cli_programs:{program}", *arguments, "-o", "m.mlirbc"]) == 0
    assert exported("m.mlirbc").startswith(signature)


def test_an_example_in_a_file(folder: Path) -> None:
    np.save("x.npy", np.ones((2, 4), np.float32))
    assert main(["export", "cli_programs:net", "--input", "@x.npy", "-o", "m.mlir"]) == 0
    assert exported("m.mlir") == "main(x: float32[2, 4]) -> (float32[2, 2])"


def test_names_of_module_and_function(folder: Path) -> None:
    names = ["--function", "classify", "--module-name", "net"]
    spec = ["cli_programs:net", "--input", "2x4xf32", "-o", "m.mlir"]
    assert main(["export", *spec, *names, "--strict"]) == 0
    assert "classify" in exported("m.mlir", "classify")
    assert "module @net" in Path("m.mlir").read_text()


def test_external_parameters_of_a_scope_are_saved(folder: Path) -> None:
    spec = ["cli_programs:net", "--input", "2x4xf32", "-o", "m.mlirbc"]
    external = ["--external-parameters", "small", "--parameters", "m.safetensors"]
    assert main(["export", *spec, *external]) == 0
    assert list(aot_export("m.mlirbc").parameters) == ["small"]
    assert set(open_archive("m.safetensors")) == {"linear.weight", "linear.bias"}


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("cli_programs", "'cli_programs' is not of the form package.module:name"),
        ("cli_programs:", "is not of the form package.module:name"),
        ("missing:net", "importing missing failed: ModuleNotFoundError: No module named 'missing'"),
        ("cli_programs:nest", "there is no 'nest'; there are: time, torch, nn, Net, "),
        ("cli_programs:Sized", "Sized() has required arguments; name a function that makes it"),
        ("cli_programs:PI", "there is no 'PI'"),
        ("cli_programs:fails", "fails() failed: RuntimeError: no weights (at "),
    ],
)
def test_a_program_that_cannot_be_had_is_one_line(
    program: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", program, "-o", "m.mlir"]) == 1
    output = capsys.readouterr()
    assert output.err.startswith("pelton: error: ") and output.err.count("\n") == 1
    assert message in output.err and output.out == ""
    assert not Path("m.mlir").exists()


def test_values_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "cli_programs:net", "--input", "2x4xf32=1", "-o", "m.mlir"]) == 1
    assert "--input 2x4xf32=1: export takes types and sizes" in capsys.readouterr().err


def test_a_warning_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spec = ["cli_programs:make_training_net", "--input", "2x4xf32", "-o", "m.mlir"]
    assert main(["export", *spec]) == 0
    error = capsys.readouterr().err
    assert error.startswith("pelton: warning: exporting in training mode: 1 ")
    assert error.count("\n") == 1
