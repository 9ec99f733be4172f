"""Element types: what goes in comes out, computed as torch computes it, or is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from pelton import aot

from ..programs import assert_same, compiled

SUPPORTED = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "float16", "bfloat16", "float32",
    "float64", "complex64",
)  # fmt: skip


class Everything(nn.Module):
    """Identity, arithmetic, and parameters of two sizes (a small one is folded into code)."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.small = nn.Parameter((torch.arange(6) % 5).to(dtype), requires_grad=False)
        self.large = nn.Parameter((torch.arange(3000) % 3).to(dtype), requires_grad=False)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        if x.dtype is torch.bool:
            return x, (x & ~x) | (x ^ x), x | self.small[:3], self.large.any(), self.small
        computed = x * x + x - 3
        total = self.large.sum(0, dtype=x.dtype)
        return x, computed, x + self.small[:3], total, self.small


@pytest.mark.parametrize("name", SUPPORTED)
def test_identity_arithmetic_and_parameters_equal_eager(name: str, tmp_path: Path) -> None:
    dtype = getattr(torch, name)
    model = Everything(dtype)
    x = (torch.arange(6).reshape(2, 3) % (2 if name == "bool" else 7)).to(dtype)
    exe = compiled(tmp_path, model, (x,))
    tolerance = {"float16": 1e-3, "bfloat16": 1e-2}.get(name, 1e-6)
    assert_same(exe(x), model(x), rtol=tolerance, atol=0)


@pytest.mark.parametrize("name", ["uint16", "uint64", "float4_e2m1fn_x2"])
def test_a_type_without_a_form_in_the_torch_dialect_is_refused_by_name(name: str) -> None:
    x = torch.zeros(2, dtype=getattr(torch, name))
    with pytest.raises(aot.ExportError, match=rf"torch\.{name}.*cannot be exported|{name}"):
        aot.export(lambda x: x, args=(x,))


def test_values_of_64_bits_are_not_narrowed(tmp_path: Path) -> None:
    def program(n: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return n * 3 + 1, x / 3 + 1e-12

    n = torch.tensor([2**40 + 1, -(2**53) - 1])
    x = torch.tensor([1 / 3, 1e200], dtype=torch.float64)
    exe = compiled(tmp_path, program, (n, x))
    assert_same(exe(n, x), program(n, x), rtol=1e-15, atol=0)


def test_integer_division_of_large_and_negative_numbers_is_exact(tmp_path: Path) -> None:
    def program(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return a // b, a % b

    a = torch.tensor([2**53 + 1, -7, 7, -(2**40) - 1])
    b = torch.tensor([3, 2, -2, 10])
    assert_same(compiled(tmp_path, program, (a, b))(a, b), program(a, b))


def test_a_float16_sum_is_accumulated_as_torch_does(tmp_path: Path) -> None:
    x = torch.full((3000,), 2.0, dtype=torch.float16)
    assert_same(compiled(tmp_path, lambda x: x.sum(), (x,))(x), x.sum(), rtol=1e-3)


def test_a_float_becomes_any_unsigned_byte(tmp_path: Path) -> None:
    x = torch.tensor([7.2, 127.5, 128.0, 178.9, 255.0, 0.0])
    exe = compiled(tmp_path, lambda x: (x.byte(), x.to(torch.uint8).float() / 255), (x,))
    assert_same(exe(x), (x.byte(), x.to(torch.uint8).float() / 255))
