"""Numbers at the ends of their types, and NaN, beside eager torch."""

import math

import pytest
import torch
import torch.nn.functional as F

from pelton import aot
from tests.coverage.onnx_model import OnnxModel

INF, NAN = math.inf, math.nan

SIZES = (1e-10, 1e-6, 1.0, 2.5, 30.0, 88.0, 100.0, 1e4, 1e30)
X = torch.tensor([0.0, *SIZES, *(-size for size in SIZES), INF, -INF, NAN])

FUNCTIONS = {
    "log_sigmoid": F.logsigmoid,
    "softplus": F.softplus,
    "logaddexp": lambda x: torch.logaddexp(x, x.flip(0)),
    "logaddexp of equals": lambda x: torch.logaddexp(x, x),
    "logaddexp2": lambda x: torch.logaddexp2(x, x),
    "logsumexp": lambda x: torch.logsumexp(x[:16].reshape(4, 4), 1),
    "logcumsumexp": lambda x: torch.logcumsumexp(x[:18], 0),
    "sinh": torch.sinh,
    "asinh": torch.asinh,
    "acosh": torch.acosh,
    "atanh": torch.atanh,
    "sinc": lambda x: torch.sinc(x[:8]),
    "isfinite": torch.isfinite,
    "reciprocal square": lambda x: x**-2,
    "fmod": lambda x: torch.fmod(x[:16], 3.0),
    "binary cross entropy": lambda x: F.binary_cross_entropy_with_logits(
        x[:18], torch.linspace(0, 1, 18), reduction="none"
    ),
    "weighted cross entropy": lambda x: F.binary_cross_entropy_with_logits(
        x[:9], torch.ones(9), x[:9].abs(), pos_weight=torch.full((9,), 3.0)
    ),
}


def test_functions_of_hard_numbers(check):
    check(FUNCTIONS, [X])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_hard_numbers_in_onnx(name):
    output = aot.export(lambda x: FUNCTIONS[name](x), args=(X,))
    (got,), wanted = OnnxModel(output)(X), FUNCTIONS[name](X)
    if name == "log_sigmoid":  # onnxruntime's minimum of -infinity is the lowest number
        got = torch.where(got < -3e38, -INF, got)
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5, equal_nan=True)


def test_functions_of_hard_numbers_in_half_precision(check):
    names = ("log_sigmoid", "softplus", "sinh", "asinh", "acosh", "atanh", "isfinite")
    for dtype in (torch.float16, torch.bfloat16):
        check({name: FUNCTIONS[name] for name in names}, [X.to(dtype)])


Y = torch.tensor([0.0, 0.0, 1.0, -1.0, 0.0, INF, -INF, 1.0, NAN, 2.0, -2.0])
Z = torch.tensor([-1.0, 1.0, 0.0, 0.0, 0.0, -INF, INF, INF, 1.0, -3.0, -3.0])


def test_angles(check):
    check({"atan2": torch.atan2}, [Y, Z])
    output = aot.export(lambda y, z: torch.atan2(y, z), args=(Y, Z))
    (got,) = OnnxModel(output)(Y, Z)
    torch.testing.assert_close(got, torch.atan2(Y, Z), equal_nan=True)


BASE = torch.tensor([-2.0, -1.0, 0.0, 2.0, -3.0, 1.0, -1.0, NAN, -INF, 0.0, 4.0])
EXPONENT = torch.tensor([2.0, 3.0, 0.0, -1.0, 0.5, INF, 1e4, 0.0, 3.0, -1.0, 0.5])


def test_powers(check):
    whole = torch.tensor([2, 3, 0, -1, 2, 5, 4, 0, 3, 1, -2])
    base = torch.tensor([-2, -1, 3, 2, -3, 1, -1, 0, 7, 0, -3])
    check(
        {
            "floats": torch.pow,
            "by whole numbers": lambda x, y: torch.pow(x, whole),
            "of whole numbers": lambda x, y: torch.pow(base, whole) + x.isnan(),
            "of whole numbers, by floats": lambda x, y: torch.pow(base, y),
            "of a number": lambda x, y: torch.pow(-2.0, y),
            "of a whole number": lambda x, y: (-1.0) ** torch.arange(11) * x,
            "in float64": torch.float_power,
            "in float64 by a number": lambda x, y: torch.float_power(x, 3),
            "in float64 of a number": lambda x, y: torch.float_power(-2.0, y),
        },
        [BASE, EXPONENT],
    )
    check({"half": torch.pow}, [BASE.half(), EXPONENT.half()])


A = torch.tensor([[1.0, NAN, 2.0, -3.0], [NAN, 1, 2, 3], [4, 3, 2, NAN], [1, 2, 3, 4.0]])
B = torch.tensor([[NAN, 1.0, 2.0, 5.0], [1, 1, 2, 3], [4, 3, 2, 1], [NAN, 2, 3, 4.0]])


def test_nan_is_kept(check):
    functions = {
        "maximum": torch.maximum,
        "minimum": torch.minimum,
        "clamp": lambda a, b: a.clamp(-1, 1),
        "clamp from below": lambda a, b: a.clamp(min=0),
        "clamp from above": lambda a, b: a.clamp(max=0),
        "clamp by tensors": lambda a, b: torch.clamp(a, b, b + 1),
        "relu": lambda a, b: F.relu(a),
        "relu6": lambda a, b: F.relu6(a),
        "hardtanh": lambda a, b: F.hardtanh(a),
        "hardshrink": lambda a, b: F.hardshrink(a),
        "threshold": lambda a, b: F.threshold(a, 0.5, 0.0),
        "normalize": lambda a, b: F.normalize(a, dim=1),
        "maximum of rows": lambda a, b: a.amax(1),
        "pooled": lambda a, b: F.max_pool2d(a[None, None], 2),
        "equal to itself": lambda a, b: a == a,
        "unlike itself": lambda a, b: a != a,
        "as large as itself": lambda a, b: a >= a,
        "as small as itself": lambda a, b: a <= a,
    }
    check(functions, [A, B])
    check(functions, [A.half(), B.half()])


def test_places_are_those_of_the_first_nan(check):
    x = torch.tensor([[1, NAN, 3], [NAN, 2, NAN], [1, 5, 2], [-INF, -INF, NAN], [INF, NAN, INF]])
    functions = {
        "argmax": lambda x: x.argmax(1),
        "argmin, kept": lambda x: x.argmin(0, keepdim=True),
        "argmax of all": lambda x: x.argmax(),
        "argmin of all, kept": lambda x: x.argmin(keepdim=True),
        "max": lambda x: x.max(1),
        "min": lambda x: x.min(-2),
    }
    for dtype in (torch.float32, torch.float16, torch.float64):
        check(functions, [x.to(dtype)])
    sizes = {0: torch.export.Dim("rows", min=2), 1: torch.export.Dim("columns", min=2)}
    check(functions, [x], [x.T.contiguous()], [x[:, :2]], dynamic=[sizes])


def test_bounds_of_nan_and_powers_of_infinity(check):
    functions = {
        "clamp": lambda x: x.clamp(NAN, 1.0),
        "clamp from above": lambda x: x.clamp(max=NAN),
        "clamp of integers": lambda x: x.nan_to_num(0, 9, -9).clamp(-9, 9).long().clamp(NAN),
        **{f"** {n}": lambda x, n=n: x**n for n in (2.5, -1.5, 0.5, -0.5, 3.0, 1 / 3)},
    }
    check(functions, [X])


def test_running_results_of_any_length(check):
    lengths = (5, 1, 2, 9, 33)
    calls = [[torch.randn(3, length, 2) * 100] for length in lengths]
    check(
        {
            "logcumsumexp": lambda x: torch.logcumsumexp(x, 1),
            "logcumsumexp of large": lambda x: torch.logcumsumexp(x * 0 + 1e4, 1),
            "cumprod": lambda x: torch.cumprod(x / 100, -2),
            "cumprod of whole numbers": lambda x: torch.cumprod(x.to(torch.int64), 1),
        },
        *calls,
        dynamic=[{1: "length"}],
    )


def test_comparisons_with_itself_are_counted(check):
    calls = [[torch.randn(sizes) * 10] for sizes in ((5, 6), (9, 4), (1, 3))]
    for dtype in (torch.float32, torch.int64, torch.bool):
        check(
            {
                "equal": lambda x: (x == x).sum(),
                "unlike": lambda x: (x != x).sum(1),
                "at least": lambda x: (x >= x).float().mean(),
            },
            *[[x.to(dtype)] for (x,) in calls],
            dynamic=[{0: "rows", 1: "columns"}],
        )
