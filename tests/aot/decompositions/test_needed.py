"""Operators that the dialect has and we decompose all the same: each would fail if kept whole."""

import pytest
import torch
import torch.nn.functional as F

from pelton import aot
from pelton.aot.decompositions import extend_aot_decompositions
from pelton.aot.decompositions.dialect import DECOMPOSED_THOUGH_KNOWN

aten = torch.ops.aten

X = torch.rand(4, 6)

PROGRAMS = {
    aten._weight_norm_interface.default: lambda x: torch._weight_norm(x, x[:, :1].abs(), 0),
    aten.alias_copy.default: lambda x: torch.alias_copy(x),
    aten.binary_cross_entropy.default: lambda x: F.binary_cross_entropy(x, x),
    aten.clamp_max.Tensor: lambda x: torch.clamp_max(x, x.flip(0)),
    aten.cosine_embedding_loss.default: lambda x: F.cosine_embedding_loss(x, x + 1, x[:, 0]),
    aten.cross_entropy_loss.default: lambda x: F.cross_entropy(
        x, torch.tensor([1, 2, 3, 0]), label_smoothing=0.1
    ),
    aten.diagonal_copy.default: lambda x: torch.diagonal_copy(x),
    aten.expand_copy.default: lambda x: torch.expand_copy(x, (2, 4, 6)),
    aten.fft_fft.default: lambda x: torch.fft.fft(x).abs(),
    aten.fft_ifft.default: lambda x: torch.fft.ifft(torch.complex(x, x)).abs(),
    aten.isfinite.default: lambda x: torch.isfinite(x),
    aten.linalg_norm.default: lambda x: torch.linalg.norm(x),
    aten.logsumexp.default: lambda x: torch.logsumexp(x, (0, 1)),
    aten.meshgrid.default: lambda x: torch.meshgrid(x[0], x[1]),
    aten.meshgrid.indexing: lambda x: torch.meshgrid(x[0], x[1], indexing="xy"),
    aten.nll_loss2d_forward.default: lambda x: F.nll_loss(
        x.reshape(1, 2, 3, 4), torch.ones(1, 3, 4, dtype=torch.int64)
    ),
    aten.nll_loss_forward.default: lambda x: F.nll_loss(x, torch.tensor([1, 2, -100, 0])),
    aten.permute_copy.default: lambda x: torch.permute_copy(x, (1, 0)),
    aten.split_with_sizes_copy.default: lambda x: torch.split_with_sizes_copy(x, (1, 3)),
    aten.squeeze_copy.default: lambda x: torch.squeeze_copy(x[:1]),
    aten.squeeze_copy.dim: lambda x: torch.squeeze_copy(x[:1], 0),
    aten.t_copy.default: lambda x: torch.t_copy(x),
    aten.transpose_copy.int: lambda x: torch.transpose_copy(x, 0, 1),
    aten.unbind_copy.int: lambda x: torch.unbind_copy(x),
    aten.unfold_copy.default: lambda x: torch.unfold_copy(x, 1, 2, 2),
    aten.unsqueeze_copy.default: lambda x: torch.unsqueeze_copy(x, 0),
    aten.view_copy.default: lambda x: torch.view_copy(x, (24,)),
    aten.xlogy.Tensor: lambda x: torch.xlogy(x, x),
}


@pytest.mark.parametrize("operator", PROGRAMS, ids=str)
def test_the_operator_cannot_be_kept_whole(operator):
    assert operator in DECOMPOSED_THOUGH_KNOWN
    with extend_aot_decompositions(remove_ops=[operator]):
        try:
            output = aot.export(PROGRAMS[operator], args=(X,))
        except aot.PeltonError:
            return  # not even to be imported
    with pytest.raises(aot.CompileError):
        output.compile(optimization_level=0)


WITHOUT_PROGRAM = {
    aten.broadcast_tensors.default: "fails for tensors of several types",
    aten.count_nonzero.default: "refused for several dimensions",
    aten.count_nonzero.dim_IntList: "refused for several dimensions",
    aten.float_power.Tensor_Tensor: "wrong numbers, which the tests of bool tensors compare",
    aten.fft_rfft.default: "the family of Fourier transforms has it in any case",
    aten.max_unpool2d.default: "fails on some sizes",
    aten.poisson_nll_loss.default: "fails with `full`",
    aten.stft.center: "crashes on some windows",
    aten.einsum.default: "fails on some equations of large models only",
    aten.grid_sampler.default: "wrong numbers, which tests/coverage compares",
    aten.im2col.default: "fails on some sizes, of which tests/coverage has one",
    aten.max_unpool3d.default: "fails on some sizes",
    aten.native_batch_norm.default: "its results without elements come of training only",
    aten.stft.default: "crashes on some windows",
}
"""Operators that a simple program does not show to be needed, and why they are: samples of torch's
database, in tests/coverage, fail without them."""


def test_each_entry_is_asked_for():
    assert {*PROGRAMS, *WITHOUT_PROGRAM} == {*DECOMPOSED_THOUGH_KNOWN}
