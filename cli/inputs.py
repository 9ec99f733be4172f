"""The `--input` option: `[NAME:]` and a tensor, a file, a scalar, or the range of a scalar.

2x4xf32             a tensor; sizes may be dynamic: ?x4xf32, 1..8x4xf32, b=1..4..8x4xf32
2x4xf32=1.5         a tensor of one value; 3xi64=1,2,3 of several; f32=2 without dimensions
@x.npy              a tensor in a file
3, 0.5, true        a Python number
1..8, 1..4..8       a Python integer with its range: min..max or min..opt..max
"""

from __future__ import annotations

import argparse
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pelton.runtime.call.dtypes import DTYPES, DType
from pelton.runtime.errors import ArtifactError, SignatureError

HELP = "SHAPExTYPE[=VALUES], @FILE.npy or a number, with NAME: before it to pass it by name"
"""The short form of the above, for `--help`."""


@dataclass(frozen=True)
class Range:
    """The bounds of a dynamic size; sizes of one `name` are equal."""

    min: int
    opt: int
    max: int
    name: str | None = None


Size = int | Range | None
"""One size: fixed, within bounds, or (None) any."""


@dataclass(frozen=True)
class Tensor:
    """A tensor described by its element type and sizes; `values` is the text of its elements."""

    dtype: DType
    sizes: tuple[Size, ...]
    values: str | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes where all are numbers.

        Raises:
            SignatureError: A size is dynamic.
        """
        fixed = tuple(size for size in self.sizes if isinstance(size, int))
        if len(fixed) != len(self.sizes):
            raise SignatureError("values have fixed sizes; give numbers instead of ? and ranges")
        return fixed


@dataclass(frozen=True)
class Input:
    """One `--input`.

    Attributes:
        text: As it was written.
        name: The parameter or leaf that it is for; None: by position.
        value: What it says.
    """

    text: str
    name: str | None
    value: Tensor | Path | bool | int | float | Range


_NAME = re.compile(r"([A-Za-z_][^:@=]*):(.+)", re.DOTALL)
_RANGE = r"(\d+)\.\.(?:(\d+)\.\.)?(\d+)"
_SIZE = re.compile(rf"(?:(?:([A-Za-z_]\w*)=)?{_RANGE}|(\d+)|\?)x")
_ELEMENTS = re.compile(r"([A-Za-z]\w*)(?:=(.*))?", re.DOTALL)
_BOOLS = {"true": True, "false": False}


def _spellings(dtype: DType) -> list[str]:
    names = (dtype.name, dtype.torch_mlir, dtype.safetensors, dtype.mlir)
    return [name.lower() for name in names if name]


_DTYPES: dict[str, DType] = {}
"""Element types by all their names; MLIR's `i8` is the signed one, which comes first."""
for _dtype in DTYPES.values():
    for _name in _spellings(_dtype):
        _DTYPES.setdefault(_name, _dtype)


def add_input_option(parser: argparse.ArgumentParser, metavar: str, help: str) -> None:
    """Add `--input`, which may be repeated and is read by `parse_input`.

    Args:
        parser: The parser of a subcommand.
        metavar: The name of the value in the help text.
        help: The help text.
    """
    parser.add_argument(
        "--input",
        dest="inputs",
        type=parse_input,
        action="append",
        default=[],
        metavar=metavar,
        help=help,
    )


def parse_input(text: str) -> Input:
    """Read one `--input`.

    Raises:
        argparse.ArgumentTypeError: It is nothing of the above.

    Example:
        >>> parse_input("mask:2x4xi1=true").name
        'mask'
        >>> parse_input("b=1..8x4xf32").value.sizes
        (Range(min=1, opt=4, max=8, name='b'), 4)
    """
    named = _NAME.fullmatch(text)
    name, rest = (named[1], named[2]) if named else (None, text)
    if rest.startswith("@"):
        return Input(text, name, Path(rest[1:]))
    bounds = re.fullmatch(_RANGE, rest)
    if bounds is not None:
        return Input(text, name, _range(None, *bounds.groups()))
    number = _number(rest)
    return Input(text, name, _tensor(rest) if number is None else number)


def parse_bounds(text: str) -> int | Range:
    """Read a size or a range.

    Raises:
        argparse.ArgumentTypeError: It is neither.

    Example:
        >>> parse_bounds("3"), parse_bounds("1..8")
        (3, Range(min=1, opt=4, max=8, name=None))
    """
    if text.isdecimal():
        return int(text)
    bounds = re.fullmatch(_RANGE, text)
    if bounds is None:
        raise argparse.ArgumentTypeError(
            f"cannot read {text!r}; expected a size, MIN..MAX or MIN..OPT..MAX"
        )
    return _range(None, *bounds.groups())


def _number(text: str) -> bool | int | float | None:
    if text.lower() in _BOOLS:
        return _BOOLS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _tensor(text: str) -> Tensor:
    sizes: list[Size] = []
    position = 0
    while (match := _SIZE.match(text, position)) is not None:
        name, low, opt, high, fixed = match.groups()
        size = _range(name, low, opt, high) if low else int(fixed) if fixed else None
        sizes.append(size)
        position = match.end()
    elements = _ELEMENTS.fullmatch(text, position)
    if elements is None:
        raise argparse.ArgumentTypeError(f"cannot read {text!r}; expected {HELP}")
    dtype = _DTYPES.get(elements[1].lower())
    if dtype is None:
        known = ", ".join(min(_spellings(dtype), key=len) for dtype in DTYPES.values())
        raise argparse.ArgumentTypeError(
            f"unknown element type {elements[1]!r} in {text!r}; known: {known}"
        )
    return Tensor(dtype, tuple(sizes), elements[2])


def _range(name: str | None, low: str, opt: str | None, high: str) -> Range:
    smallest, largest = int(low), int(high)
    usual = int(opt) if opt is not None else max(smallest, largest // 2)
    if not smallest <= usual <= largest:
        raise argparse.ArgumentTypeError(f"the range {low}..{high} is not in order")
    return Range(smallest, usual, largest, name)


def array_of(given: Input, like: DType | None = None) -> NDArray[Any]:
    """Return the array that an input describes or names.

    Args:
        given: A tensor or a file.
        like: The element type that is expected: files of types that numpy lacks hold bare bytes.

    Raises:
        ArtifactError: The file cannot be read.
        SignatureError: The values do not fit the type or the sizes.

    Example:
        >>> array_of(parse_input("3xi64=1,2,3"))
        array([1, 2, 3])
    """
    if isinstance(given.value, Tensor):
        return _filled(given.value, given.text)
    assert isinstance(given.value, Path), given
    try:
        with open(given.value, "rb") as file:
            array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
    except FileNotFoundError:
        raise ArtifactError(f"no such file: {given.value}") from None
    except (OSError, ValueError, EOFError) as error:
        raise ArtifactError(f"{given.value} is no .npy file of numbers: {error}") from error
    if array.dtype.kind == "V" and like is not None and array.dtype.itemsize == like.itemsize:
        return array.view(like.numpy)
    return array


def _filled(tensor: Tensor, text: str) -> NDArray[Any]:
    if tensor.values is None:
        return np.zeros(tensor.shape, tensor.dtype.numpy)
    elements = tensor.values.split(",")
    if len(elements) not in (1, math.prod(tensor.shape)):
        raise SignatureError(
            f"{text!r} gives {len(elements)} values for {math.prod(tensor.shape)} elements; "
            "give one for all, or one for each"
        )
    try:
        values = [_element(element.strip(), tensor.dtype) for element in elements]
        array = np.array(values, tensor.dtype.numpy)
    except (ValueError, OverflowError) as error:
        raise SignatureError(f"{text!r}: {error}") from error
    if len(values) == 1:
        return np.full(tensor.shape, array[0], tensor.dtype.numpy)
    return array.reshape(tensor.shape)


def _element(text: str, dtype: DType) -> bool | int | float | complex:
    if dtype.name == "bool":
        return _BOOLS[text.lower()] if text.lower() in _BOOLS else bool(int(text))
    if dtype.name.startswith("complex"):
        return complex(text)
    return int(text, 0) if dtype.name.startswith(("int", "uint")) else float(text)
