"""Integer arithmetic is exact, whatever the width and the signs."""

import pytest
import torch
import torch.nn.functional as F

BINARY = {
    "floor division": lambda x, y: x // y,
    "remainder": lambda x, y: x % y,
    "truncated division": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
    "floored division": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "fmod": torch.fmod,
    "true division": lambda x, y: x / y,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "and a number": lambda x, y: x & 5,
    "maximum": torch.maximum,
    "less": lambda x, y: x < y,
    "choice": lambda x, y: torch.where(x > y, x, y),
    "by 3": lambda x, y: x // 3,
    "modulo 3": lambda x, y: x % 3,
    "times 2": lambda x, y: x * 2,
    "negated": lambda x, y: -x,
    "squared": lambda x, y: x**2,
    "fifth power": lambda x, y: x**5,
    "sum": lambda x, y: x.sum(),
    "product": lambda x, y: y.prod(),
    "largest": lambda x, y: x.amax(),
    "where largest": lambda x, y: x.argmax(),
    "sorted": lambda x, y: x.sort()[0],
    "as float": lambda x, y: x.float() * 0.5,
    "with float": lambda x, y: x * 1.5,
    "with int64": lambda x, y: x + torch.arange(6),
    "shifted": lambda x, y: x >> 1,
}


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.int8])
def test_signed_arithmetic_is_that_of_torch(check, dtype):
    x = torch.tensor([-7, 6, -1, 0, -6, 100], dtype=dtype)
    y = torch.tensor([2, -3, 2, 5, 3, 7], dtype=dtype)
    check(BINARY, [x, y])


def test_unsigned_bytes_are_never_sign_extended(check):
    x = torch.tensor([200, 6, 255, 0, 129, 100], dtype=torch.uint8)
    y = torch.tensor([2, 3, 2, 5, 200, 7], dtype=torch.uint8)
    check(BINARY, [x, y])


def test_int64_beyond_the_floats_stays_exact(check):
    x = torch.tensor([2**62 + 1, -(2**62) - 1, 2**53 + 1, -7])
    check(
        {
            "floor division": lambda x: x // 7,
            "negated": lambda x: -x,
            "remainder": lambda x: x % 7,
            "fmod": lambda x: torch.fmod(x, 7),
            "compared": lambda x: x > 2**53,
        },
        [x],
    )


def test_powers_of_integer_tensors_wrap_as_in_torch(check):
    x = torch.tensor([2, -3, 5, -1, 0, 1])
    y = torch.tensor([3, 2, 70, 5, 0, 100])
    check({"power": lambda x, y: x**y, "of two": lambda x, y: 2**y}, [x, y])


def test_means_of_integer_windows_are_truncated(check):
    torch.manual_seed(0)
    check(
        {
            "of 1": lambda x: F.avg_pool1d(x[0, 0, 0], 3),
            "of 2": lambda x: F.avg_pool2d(x[0], 2, 1, 1, True, False),
            "of 2, divided": lambda x: F.avg_pool2d(x[0], 3, 2, 1, True, divisor_override=4),
            "of 3": lambda x: F.avg_pool3d(x, 2),
            "of 3, divided": lambda x: F.avg_pool3d(x, 2, 1, divisor_override=3),
        },
        [torch.randint(-20, 20, (1, 2, 5, 6, 7))],
    )
