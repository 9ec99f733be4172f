"""The small programs that the tests of the runtime load and call."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from pelton import aot
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import Parameter, Signature, TensorSpec
from pelton.runtime.call.sizes import Dim

ELEMENT_TYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32",
    "float64", "complex64",
)  # fmt: skip
"""The element types that a program takes and gives."""


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


class Counter(torch.nn.Module):
    """Has state of three element types, one of them bool."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))
        self.register_buffer("odd", torch.zeros(2, dtype=torch.bool))
        self.register_buffer("calls", torch.tensor(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x)
        self.odd.logical_not_()
        self.calls.add_(1)
        return self.total + 0


class Weighted(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(4.0))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + self.weight, self.weight


def structured(
    x: torch.Tensor,
    options: dict[str, torch.Tensor | None],
    pair: Pair,
    factor: int = 3,
    *,
    label: str = "plain",
) -> dict[str, Any]:
    shift = options["shift"]
    assert shift is not None
    scaled = x * factor + shift
    if label == "negative":
        scaled = -scaled
    return {"sum": scaled, "swapped": Pair(pair.right + 0, pair.left + 0), "rest": [None, 5, x + 1]}


def doubled(*tensors: torch.Tensor) -> list[torch.Tensor]:
    return [~x if x.dtype is torch.bool else x + x for x in tensors]


def two_entry_points(folder: Path) -> aot.ExportOutput:
    """Write a module by hand; it also shows what a signature in MLIR looks like."""
    functions = []
    for name, operation in (("double", "arith.addf"), ("square", "arith.mulf")):
        spec = TensorSpec(DTYPES["float32"], ("n",))
        parameter = Parameter("x", "POSITIONAL_OR_KEYWORD", 0)
        signature = Signature(name, (parameter,), (spec,), 0, (spec,), (Dim("n", 1, 8),))
        text = json.dumps(signature.to_json())
        functions.append(
            f"""func.func @{name}(%x: tensor<?xf32>) -> tensor<?xf32>
            attributes {{iree.reflection = {{pelton.signature = {text}}}}} {{
              %result = {operation} %x, %x : tensor<?xf32>
              return %result : tensor<?xf32>
            }}"""
        )
    path = folder / "two_entry_points.mlir"
    path.write_text(f"module @pair {{ {' '.join(functions)} }}")
    return aot.export(path)


def without_signature(folder: Path) -> aot.ExportOutput:
    path = folder / "without_signature.mlir"
    path.write_text(
        "func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }"
    )
    return aot.export(path)


def rows(low: int, high: int) -> aot.InputInfo:
    return aot.InputInfo(((low, max(2, low), high), 4), torch.float32)


def shared_rows() -> list[aot.InputInfo]:
    batch = aot.NamedDimension("batch", 1, 3, 8)
    return [aot.InputInfo((batch, 4), torch.float32), aot.InputInfo((batch, 4), torch.float32)]


def of_twice_a_dimension(folder: Path) -> aot.ExportOutput:
    half = torch.export.Dim("half", min=2, max=8)
    return aot.export(lambda x: x + 1, args=(torch.zeros(6),), dynamic_shapes=({0: 2 * half},))


def add_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x + y


def itself_and_views(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return x, x.reshape(4, 3), x[1:]


def plus_number(x: torch.Tensor, n: int) -> tuple[torch.Tensor, int]:
    return x + n, n


def of_constants() -> tuple[torch.Tensor, float, None, str]:
    return torch.ones(3), 0.5, None, "done"


def export_structured(folder: Path) -> aot.ExportOutput:
    tensor = torch.zeros(2)
    options = {"shift": tensor, "unused": None}
    return aot.export(structured, args=(tensor, options, Pair(tensor, torch.zeros(3))))


PROGRAMS: dict[str, Callable[[Path], aot.ExportOutput]] = {
    "add_one": lambda folder: aot.export(add_one, args=(torch.zeros(4),)),
    "add_one_to_rows": lambda folder: aot.export(add_one, args=[rows(0, 64)]),
    "add_one_to_number": lambda folder: aot.export(add_one, args=(torch.tensor(1.0),)),
    "add_one_to_thin": lambda folder: aot.export(add_one, args=(torch.zeros(4, 1, 3),)),
    "add_one_to_complex": lambda folder: aot.export(
        add_one, args=(torch.zeros(4, dtype=torch.complex64),)
    ),
    "add_rows": lambda folder: aot.export(add, args=shared_rows()),
    "counter": lambda folder: aot.export(Counter(), args=(torch.zeros(4),)),
    "weighted": lambda folder: aot.export(
        Weighted(), args=(torch.zeros(4),), external_parameters=True
    ),
    "weighted_within": lambda folder: aot.export(Weighted(), args=(torch.zeros(4),)),
    "itself_and_views": lambda folder: aot.export(itself_and_views, args=(torch.zeros(3, 4),)),
    "plus_number": lambda folder: aot.export(
        plus_number, args=(torch.zeros(4), aot.DimensionInputInfo((1, 2, 100)))
    ),
    "of_constants": lambda folder: aot.export(of_constants),
    "of_twice_a_dimension": of_twice_a_dimension,
    "doubled": lambda folder: aot.export(
        doubled, args=[torch.zeros(3, dtype=getattr(torch, name)) for name in ELEMENT_TYPES]
    ),
    "structured": export_structured,
    "two_entry_points": two_entry_points,
    "without_signature": without_signature,
}
"""How each program is exported; the argument is a folder to write in."""
