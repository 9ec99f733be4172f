import argparse
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from pelton.cli.inputs import Input, Range, Tensor, array_of, parse_input
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.errors import ArtifactError, SignatureError

F32 = DTYPES["float32"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2x4xf32", Tensor(F32, (2, 4))),
        ("f32", Tensor(F32, ())),
        ("?x4xf32", Tensor(F32, (None, 4))),
        ("1..8x4xf32", Tensor(F32, (Range(1, 4, 8), 4))),
        ("b=1..2..8x4xf32", Tensor(F32, (Range(1, 2, 8, "b"), 4))),
        ("x=1..8xx2=3..3xf32", Tensor(F32, (Range(1, 4, 8, "x"), Range(3, 3, 3, "x2")))),
        ("2xf32=1.5", Tensor(F32, (2,), "1.5")),
        ("2xi8=-1,0x10", Tensor(DTYPES["int8"], (2,), "-1,0x10")),
        ("3", 3),
        ("-0.5", -0.5),
        ("true", True),
        ("1..8", Range(1, 4, 8)),
        ("1..2..8", Range(1, 2, 8)),
        ("@a:b.npy", Path("a:b.npy")),
    ],
)
def test_forms_of_an_input(text: str, value: object) -> None:
    assert parse_input(text) == Input(text, None, value)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["x", "cache['keys'][0]", "point.x"])
def test_a_name_stands_before_a_colon(name: str) -> None:
    assert parse_input(f"{name}:2xf32=1").name == name


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("i1", "bool"), ("bool", "bool"), ("i8", "int8"), ("ui8", "uint8"), ("u8", "uint8"),
        ("si64", "int64"), ("bf16", "bfloat16"), ("float64", "float64"), ("c64", "complex64"),
        ("F16", "float16"), ("f8E4M3FN", "float8_e4m3fn"),
    ],
)  # fmt: skip
def test_element_types_have_the_names_of_all_formats(text: str, dtype: str) -> None:
    assert parse_input(f"2x{text}").value == Tensor(DTYPES[dtype], (2,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2x4xg32", "unknown element type 'g32' in '2x4xg32'; known: i1, i8,"),
        ("", "cannot read ''; expected SHAPExTYPE"),
        ("2x4x", "cannot read '2x4x'"),
        ("8..1xf32", "the range 8..1 is not in order"),
        ("1..9..8", "the range 1..8 is not in order"),
    ],
)
def test_other_texts_are_refused(text: str, message: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=message):
        parse_input(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2x2xf32=1.5", np.full((2, 2), 1.5, np.float32)),
        ("2x2xf32=1,2,3,4", np.float32([[1, 2], [3, 4]])),
        ("2xi64", np.zeros(2, np.int64)),
        ("i32=7", np.array(7, np.int32)),
        ("0x3xf32=1", np.zeros((0, 3), np.float32)),
        ("2xi1=true,0", np.array([True, False])),
        ("2xbf16=nan", np.full(2, np.nan, ml_dtypes.bfloat16)),
        ("2xc64=1+2j", np.full(2, 1 + 2j, np.complex64)),
    ],
)
def test_array_of_values(text: str, expected: np.ndarray) -> None:
    array = array_of(parse_input(text))
    assert array.dtype == expected.dtype and array.shape == expected.shape
    assert array.tobytes() == expected.tobytes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2x2xf32=1,2,3", "gives 3 values for 4 elements"),
        ("2xi8=300", "300 out of bounds for int8"),
        ("2xi8=1.5", "invalid literal for int"),
        ("2xf32=many", "could not convert string to float: 'many'"),
        ("?xf32=1", "values have fixed sizes"),
    ],
)
def test_values_that_do_not_fit_are_refused(text: str, message: str) -> None:
    with pytest.raises(SignatureError, match=message):
        array_of(parse_input(text))


def test_a_file_keeps_types_that_numpy_lacks(tmp_path: Path) -> None:
    array = np.array([1, 2], ml_dtypes.bfloat16)
    np.save(tmp_path / "x.npy", array)
    found = array_of(parse_input(f"@{tmp_path}/x.npy"), DTYPES["bfloat16"])
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "no such file"), (b"", "no .npy file"), (b"PK\3\4", "no .npy file"), ("", "no .npy")],
)
def test_a_file_that_is_no_array_is_refused(
    tmp_path: Path, content: bytes | str | None, message: str
) -> None:
    path = tmp_path / "x.npy"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.save(path, np.array([object()]), allow_pickle=True)
    with pytest.raises(ArtifactError, match=message):
        array_of(parse_input(f"@{path}"))
