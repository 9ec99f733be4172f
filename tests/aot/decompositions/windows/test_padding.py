"""Padding beside sizes that vary."""

import math

import pytest
import torch
from torch.nn import functional as F

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

WEIGHT = torch.linspace(-1, 1, 4 * 3 * 9).view(4, 3, 3, 3)


def test_padding_leaves_a_dynamic_batch_dynamic(check):
    check(
        {
            "a convolution with one result": lambda x: F.conv2d(x, WEIGHT, stride=2, padding=1),
            "cut and padded": lambda x: F.pad(x, [-1, 2, 1, -1], value=3.0),
            "cut": lambda x: F.pad(x, [0, -1]),
        },
        *[[torch.randn(batch, 3, 2, 2)] for batch in (2, 1, 5)],
        dynamic=[{0: "batch"}],
    )


AMOUNTS = {
    1: [[0, 0], [1, 2], [2, 0], [-1, 0], [-2, 1], [3, -2], [0, 3]],
    2: [[1, 0, 0, 2], [-1, 1, 2, -1], [-1, -1, -1, -1], [0, 0, 1, 0]],
    3: [[1, 1, 1, 1, 1, 1], [0, -1, 2, 0, -1, 1]],
}
CASES = [(rank, amounts) for rank, every in AMOUNTS.items() for amounts in every]


@pytest.mark.parametrize(("rank", "amounts"), CASES, ids=str)
@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_modes_of_padding(rank, amounts, mode):
    if mode == "circular" and any(amount < 0 for amount in amounts):
        pytest.skip("torch has no rule for what wraps around a cut; see the next test")
    compare(aten.pad.default, torch.randn(2, 3, *(4, 5, 4)[:rank]), amounts, mode)


def test_what_is_left_after_a_cut_wraps():
    x = torch.arange(12.0).reshape(1, 2, 6)
    result = decompose(aten.pad.default, x, [-2, 1], "circular")
    torch.testing.assert_close(result, F.pad(x[..., 2:], [0, 1], mode="circular"))


@pytest.mark.parametrize("amounts", [[-1, 0], [-2, 1], [3, -2], [-1, 1, 2, -1], [-6, 0]], ids=str)
@pytest.mark.parametrize("value", [None, 2.5, -math.inf])
def test_constant_padding_that_also_cuts(amounts, value):
    x = torch.randn(2, 4, 6)
    compare(aten.pad.default, x, amounts, "constant", value)
    compare(aten.constant_pad_nd.default, x, amounts, 0 if value is None else value)


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8, torch.half], ids=str)
def test_cuts_of_all_types(dtype):
    compare(aten.constant_pad_nd.default, torch.ones(3, 4).to(dtype), [-1, 2, 1, -1], 1)


def test_padding_without_cuts_is_left_alone():
    assert decompose(aten.constant_pad_nd.default, torch.ones(3), [1, 0]) is NotImplemented
    assert decompose(aten.replication_pad1d.default, torch.ones(1, 3), [1, 0]) is NotImplemented


@pytest.mark.parametrize(
    ("operator", "rank"),
    [(aten.reflection_pad1d, 1), (aten.reflection_pad2d, 2), (aten.reflection_pad3d, 3)],
    ids=str,
)
@pytest.mark.parametrize("batch", [[], [2]], ids=str)
def test_reflections_up_to_the_last_element(operator, rank, batch):
    x = torch.randn(*batch, 2, *[3] * rank)
    compare(operator.default, x, [2, 2] * rank)
    compare(operator.default, x, [0, 1] * rank)


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_replications_that_cut(rank):
    operator = getattr(aten, f"replication_pad{rank}d").default
    compare(operator, torch.randn(1, 2, *[4] * rank), [-1, 3] * rank)
