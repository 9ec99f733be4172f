"""Arithmetic on constants, which the folders of IREE's torch dialect get wrong."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton import aot, runtime
from pelton.aot.targets.iree import target as iree_target

VALUES = {torch.float32: (-7, -2), torch.float16: (2, -3), torch.int64: (-2, 3), torch.int8: (0, 1)}
"""Constants of each element type: one pair each, as a hundred constant results compile for long."""

BINARY = (
    "add", "sub", "mul", "eq", "lt", "ge", "maximum", "minimum", "remainder", "fmod",
    "floor_divide", "true_divide", "pow", "bitwise_and", "bitwise_xor", "logical_and",
)  # fmt: skip
UNARY = (
    "neg", "abs", "exp", "floor", "trunc", "round", "sign", "logical_not", "sum", "prod",
    "amax", "argmax", "reciprocal",
)  # fmt: skip


def _results(first: torch.Tensor, second: torch.Tensor, number: float) -> dict[str, torch.Tensor]:
    """Return what torch's functions make of constants, where they take them."""
    results: dict[str, torch.Tensor] = {
        "negative times": -1 * first,
        "negative plus": -1 + first,
        "negative minus": -1 - first,
        "by alpha": torch.add(first, second, alpha=-1),
        "chosen": torch.where(first > second, first, second),
        "several": first.new_tensor([1, 2, 3]) * -1 - first,
        "as float": first.to(torch.float64),
        "as int": first.to(torch.int64) * -1,
        "as bool": first.to(torch.bool),
    }
    with_number = {f"{name} number": (name, number) for name in BINARY if name[-4:] != "imum"}
    pairs: dict[str, tuple[str, Any]] = {name: (name, second) for name in BINARY} | with_number
    for label, (name, other) in pairs.items():
        if label != "logical_and number" and not (first.dtype.is_floating_point and "bit" in name):
            results[label] = _or_none(getattr(torch, name), first, other)
    return results | {name: _or_none(getattr(torch, name), first) for name in UNARY}


def _or_none(function: Any, *args: Any) -> Any:
    if function is torch.pow and type(args[-1]) is int and args[-1] < 0:
        return None  # refused by torch when it computes, not when it traces
    try:
        return function(*args)
    except (RuntimeError, NotImplementedError):
        return None  # torch has no such function of these


class Constants(torch.nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: torch.Tensor) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        first, second = VALUES[self.dtype]
        first_shift, shift = (0.5, 0.25) if self.dtype.is_floating_point else (0, 0)
        results = _results(
            torch.full((3,), first + first_shift, dtype=self.dtype),
            torch.full((3,), second - shift, dtype=self.dtype),
            second - shift,
        )
        return results, x


LONG = (torch.float16, torch.int64)


@pytest.mark.parametrize(
    "dtype",
    [pytest.param(each, marks=[pytest.mark.deep] if each in LONG else []) for each in VALUES],
    ids=str,
)
def test_arithmetic_on_constants(dtype: torch.dtype) -> None:
    model, x = Constants(dtype), torch.ones(2)
    got, _ = runtime.load(bytes(aot.export(model, args=(x,)).compile().map_memory()))(x)
    want, _ = model(x)
    for name, wanted in want.items():
        text = f"{name} of {VALUES[dtype]}: {got[name]}, {wanted} wanted"
        torch.testing.assert_close(
            got[name], wanted, rtol=1e-2, atol=1e-2, equal_nan=True, msg=text
        )


def test_compiler_still_folds_them_wrongly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once this fails, constants need not be hidden any more."""
    monkeypatch.setattr(iree_target, "outline_splat_constants", lambda module_op: None)
    output = aot.export(lambda x: -1 * torch.full((3,), 2.5) + x, args=(torch.zeros(3),))
    got = runtime.load(bytes(output.compile().map_memory()))(torch.zeros(3))
    assert (got > 1e18).all()


def test_a_module_stays_as_it_is() -> None:
    output = aot.export(lambda x: x + torch.ones(3), args=(torch.zeros(3),))
    before = str(output.mlir_module)
    output.compile()
    assert str(output.mlir_module) == before
