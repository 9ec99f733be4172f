"""Operators of backward passes, beside eager torch."""

import pytest
import torch

from pelton.aot.decompositions.nn.backward import BY_TORCH
from pelton.aot.decompositions.table import corrections
from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

TOLERANCE = {"rtol": 1e-4, "atol": 1e-4}


def samples(*shape):
    torch.manual_seed(0)
    return torch.randn(shape)


def test_operators_that_torch_decomposes_are_in_the_table():
    assert all(packet.default in corrections() for packet in BY_TORCH)


@pytest.mark.parametrize("operator", [aten.sigmoid_backward, aten.tanh_backward], ids=str)
def test_gradients_of_activations(operator):
    compare(operator.default, samples(3, 4), torch.rand(3, 4))


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_gradients_of_softmax(dim):
    grad, out = samples(3, 4), torch.softmax(samples(3, 4), dim)
    compare(aten._softmax_backward_data.default, grad, out, dim, torch.float32)
    compare(aten._log_softmax_backward_data.default, grad, out.log(), dim, torch.float32)


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 1, 1), (3, 2, 0)])
def test_gradients_of_max_pooling(kernel, stride, padding):
    x = samples(2, 3, 7, 6)
    steps = [[amount] * 2 for amount in (kernel, stride, padding)]
    out, indices = aten.max_pool2d_with_indices.default(x, *steps)
    operator = aten.max_pool2d_with_indices_backward.default
    compare(operator, torch.randn_like(out), x, *steps, [1, 1], False, indices)


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (7, 6), (4, 5)], ids=str)
def test_gradients_of_adaptive_means(size):
    compare(
        aten._adaptive_avg_pool2d_backward.default, samples(2, 3, *size), samples(2, 3, 7, 6),
        **TOLERANCE,
    )  # fmt: skip


@pytest.mark.parametrize(("kernel", "stride", "padding"), [(2, 2, 0), (3, 2, 1), (3, 1, 1)])
@pytest.mark.parametrize("ceil_mode", [True, False])
@pytest.mark.parametrize("include_pad", [True, False])
@pytest.mark.parametrize("divisor", [None, 5])
def test_gradients_of_means(kernel, stride, padding, ceil_mode, include_pad, divisor):
    x = samples(2, 3, 7, 6)
    arguments = ([kernel] * 2, [stride] * 2, [padding] * 2, ceil_mode, include_pad, divisor)
    grad = torch.randn_like(aten.avg_pool2d.default(x, *arguments))
    compare(aten.avg_pool2d_backward.default, grad, x, *arguments, **TOLERANCE)


@pytest.mark.parametrize("mask", [[True] * 3, [True, False, False], [False, True, True]], ids=str)
@pytest.mark.parametrize("groups", [1, 2])
def test_gradients_of_transposed_convolutions(mask, groups):
    x, weight = samples(2, 4, 5, 5), samples(4, 3, 3, 3)
    steps = ([2, 1], [1, 0], [1, 1], True, [1, 0], groups)
    grad = torch.randn_like(aten.convolution.default(x, weight, None, *steps))
    arguments = (grad, x, weight, [3 * groups], *steps, mask)
    found = decompose(aten.convolution_backward.default, *arguments)
    wanted = aten.convolution_backward.default(*arguments)
    for have, want, asked in zip(found, wanted, mask, strict=True):
        assert (have is not None) == asked
        if asked:
            torch.testing.assert_close(have, want, **TOLERANCE)


@pytest.mark.parametrize("step", [1, 2, 3, 5])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_overlapping_windows_are_summed(step, axis):
    x = torch.randn(9, 8, 10)
    windows = x.unfold(axis, 3, step)
    compare(aten.unfold_backward.default, windows, [9, 8, 10], axis, 3, step)


def test_compiled_signals_from_spectra(check):
    window = torch.hann_window(16)
    spectra = [torch.randn(2, 9, 7), torch.randn(2, 9, 7)]
    check({"signal": lambda x, y: torch.istft(torch.complex(x, y), 16, 4, window=window)}, spectra)
