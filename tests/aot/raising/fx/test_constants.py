"""Constants of MLIR modules as torch tensors: dense, splat, resources, and every element type."""

from __future__ import annotations

import math

import pytest
import torch
from iree.compiler.ir import Context, Module, Operation

from pelton.aot.raising.fx.constants import Constants, borrowed, number
from pelton.aot.spec.errors import ArtifactError, UnsupportedOpError


def constant(text: str) -> tuple[Module, Operation]:
    """Return a module of one constant with its operation."""
    module = Module.parse(f"func.func @f() {{ {text} return }}", Context())
    (function,) = module.body.operations
    return module, function.regions[0].blocks[0].operations[0].operation


def read(text: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    module, op = constant(f"%0 = arith.constant {text}")
    return Constants(module.operation).tensor(op, "value", shape, dtype)


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "expected"),
    [
        ("dense<[1.0, -2.5]> : tensor<2xf32>", (2,), torch.float32, [1.0, -2.5]),
        ("dense<[1.0, -2.5]> : tensor<2xf64>", (2,), torch.float64, [1.0, -2.5]),
        ("dense<[1.0, -2.5]> : tensor<2xf16>", (2,), torch.float16, [1.0, -2.5]),
        ("dense<[1.0, -2.5]> : tensor<2xbf16>", (2,), torch.bfloat16, [1.0, -2.5]),
        ("dense<[-1, 127]> : tensor<2xi8>", (2,), torch.int8, [-1, 127]),
        ("dense<[-1, 127]> : tensor<2xi8>", (2,), torch.uint8, [255, 127]),
        ("dense<[-9223372036854775808]> : tensor<1xi64>", (1,), torch.int64, [-(2**63)]),
        ("dense<[true, false]> : tensor<2xi1>", (2,), torch.bool, [True, False]),
        ("dense<3> : tensor<2x2xi32>", (2, 2), torch.int32, [[3, 3], [3, 3]]),
        ("dense<7.0> : tensor<f32>", (), torch.float32, 7.0),
    ],
)
def test_dense_elements_are_read(
    text: str, shape: tuple[int, ...], dtype: torch.dtype, expected: object
) -> None:
    torch.testing.assert_close(read(text, shape, dtype), torch.tensor(expected, dtype=dtype))


def test_complex_elements_are_read() -> None:
    found = read("dense<[(1.0,2.0), (0.0,-1.0)]> : tensor<2xcomplex<f32>>", (2,), torch.complex64)
    torch.testing.assert_close(found, torch.tensor([1 + 2j, -1j], dtype=torch.complex64))


def test_one_complex_element_fills_the_shape() -> None:
    found = read("dense<(0.5,0.0)> : tensor<3xcomplex<f32>>", (3,), torch.complex64)
    assert found.tolist() == [0.5, 0.5, 0.5]
    found[0] = 1  # each element has memory of its own
    assert found.tolist() == [1, 0.5, 0.5]


def test_nan_and_infinity_are_read() -> None:
    found = read("dense<[0x7FC00000, 0x7F800000, 0xFF800000]> : tensor<3xf32>", (3,), torch.float32)
    assert math.isnan(found[0])
    assert found[1:].tolist() == [math.inf, -math.inf]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0)])
def test_a_constant_without_elements_has_its_shape(shape: tuple[int, ...]) -> None:
    sizes = "x".join(map(str, shape))
    found = read(f"dense<> : tensor<{sizes}xf32>", shape, torch.float32)
    assert found.shape == shape


def test_a_resource_is_read_from_what_is_at_hand() -> None:
    module, op = constant("%0 = arith.constant dense_resource<weights> : tensor<2xi16>")
    known = Constants(module.operation, {"weights": bytes([1, 0, 2, 0])})
    assert known.tensor(op, "value", (2,), torch.int16).tolist() == [1, 2]


def test_a_missing_resource_is_refused_by_name() -> None:
    module, op = constant("%0 = arith.constant dense_resource<weights> : tensor<2xi16>")
    with pytest.raises(ArtifactError, match="refers to data 'weights' that it does not hold"):
        Constants(module.operation).tensor(op, "value", (2,), torch.int16)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("true", True), ("false", False), ("-3 : i64", -3), ("2.5 : f64", 2.5), ("4 : index", 4)],
)
def test_scalars_are_read_with_their_python_type(text: str, expected: object) -> None:
    _, op = constant(f"%0 = arith.constant {text}")
    found = number(op, "value")
    assert found == expected
    assert type(found) is type(expected)


def test_another_attribute_is_no_scalar() -> None:
    _, op = constant("%0 = arith.constant dense<1.0> : tensor<2xf32>")
    with pytest.raises(UnsupportedOpError, match="a number of an unknown form"):
        number(op, "value")


def test_borrowed_bytes_are_not_copied() -> None:
    data = bytearray(4)
    tensor = borrowed(data, (1,), torch.int32)
    data[0] = 5
    assert tensor.tolist() == [5]


def test_no_bytes_are_a_tensor_without_elements() -> None:
    assert borrowed(b"", (0, 2), torch.float32).shape == (0, 2)
