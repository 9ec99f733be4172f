from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pelton import runtime
from pelton.cli import main

Capture = pytest.CaptureFixture[str]


def compiled(program: str, *inputs: str) -> None:
    arguments = [argument for text in inputs for argument in ("--input", text)]
    assert main(["export", f"cli_programs:{program}", *arguments, "-o", "m.mlirbc"]) == 0
    assert main(["compile", "m.mlirbc", "-o", "m.vmfb"]) == 0


def test_a_result_is_printed(net: Path, capsys: Capture) -> None:
    weights = ["--parameters", str(net / "net.irpa")]
    assert main(["run", str(net / "net.vmfb"), "--input", "3x4xf32=1.5", *weights]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "result: float32[3, 2]" and len(lines) == 4


def test_results_go_to_files(net: Path, tmp_path: Path, capsys: Capture) -> None:
    x = np.random.default_rng(0).standard_normal((3, 4), np.float32)
    np.save(tmp_path / "x.npy", x)
    files = ["--input", f"x:@{tmp_path}/x.npy", "--output", f"@{tmp_path}/y.npy"]
    weights = ["--parameters", f"model={net / 'net.irpa'}"]
    assert main(["run", str(net / "net.vmfb"), *files, *weights]) == 0
    exe = runtime.load(net / "net.vmfb", parameters=net / "net.irpa")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), exe(x))
    assert capsys.readouterr().out == ""


def test_results_are_named_by_their_path(folder: Path, capsys: Capture) -> None:
    compiled("twice", "?x2xf32")
    assert main(["run", "m.vmfb", "--input", "1x2xf32=3"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "result['y']: float32[1, 2]", "[[6. 6.]]",
        "result['pair'][0]: float32[1, 2]", "[[4. 4.]]",
        "result['pair'][1]: 1",
    ]  # fmt: skip


def test_numbers_are_arguments_and_constants_are_known(folder: Path, capsys: Capture) -> None:
    compiled("scale", "2xf32", "3.0", "shift:1..9")
    assert main(["run", "m.vmfb", "--input", "shift:5", "--input", "2xf32=1,2"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "[ 8. 11.]"


def test_a_type_that_numpy_lacks_goes_to_a_file_and_back(folder: Path) -> None:
    compiled("ones")
    assert main(["run", "m.vmfb", "--output", "@y.npy"]) == 0
    compiled("twice", "2xbf16")
    outputs = ["--output", "@z.npy"]
    assert main(["run", "m.vmfb", "--input", "@y.npy", *outputs]) == 0
    assert np.load("z.npy").view(ml_dtypes.bfloat16).tolist() == [2, 2]


def test_state_is_that_of_one_call(folder: Path, capsys: Capture) -> None:
    compiled("Counter", "i64")
    for _ in range(2):
        assert main(["run", "m.vmfb", "--input", "i64=3"]) == 0
    assert capsys.readouterr().out == "result: int64[]\n3\n" * 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is no --input for x: the function is main(x: float32[b, 4])"),
        (["--input", "9x4xf32"], "dimension 0 ('b') is 9, outside its range 1..8"),
        (["--input", "2x4xf16"], "argument x expects float32[b, 4], got float16[2, 4]"),
        (["--input", "2x4xf32", "--input", "1"], "--input 1 is for nothing: the function is"),
        (["--input", "y:2x4xf32"], "--input y:2x4xf32 is for nothing"),
        (["--input", "1..4"], "a call takes a number, not a range"),
        (["--input", "2x4xf32", "--function", "f"], "no entry point 'f'; --function takes one of"),
        (
            ["--input", "2x4xf32", "--output", "@y.npy", "--output", "@z.npy"],
            "there are 1 results for 2 --output",
        ),
    ],
)
def test_what_does_not_fit_is_one_line(
    arguments: list[str], message: str, net: Path, folder: Path, capsys: Capture
) -> None:
    weights = ["--parameters", str(net / "net.irpa")]
    assert main(["run", str(net / "net.vmfb"), *weights, *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("pelton: error: ") and error.count("\n") == 1
    assert message in error
    assert not Path("y.npy").exists()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([], "missing (2): model::linear.bias (float32 2), model::linear.weight"),
        (["missing.irpa"], "no such file: missing.irpa"),
        (["model=missing.irpa"], "no such file: missing.irpa"),
        (["cli_programs.py", "model=a.irpa"], "has no scope and others have"),
    ],
)
def test_parameters_that_do_not_fit_are_one_line(
    weights: list[str], message: str, net: Path, folder: Path, capsys: Capture
) -> None:
    arguments = [argument for file in weights for argument in ("--parameters", file)]
    assert main(["run", str(net / "net.vmfb"), "--input", "2x4xf32", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and message in error


def test_an_output_is_a_file(capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["run", "m.vmfb", "--output", "y.npy"])
    assert "expected @FILE.npy, got 'y.npy'" in capsys.readouterr().err
