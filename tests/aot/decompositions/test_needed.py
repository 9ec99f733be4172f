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
    aten.alias_copy.default: lambda x: torch.alias_copy(x),
    aten.binary_cross_entropy.default: lambda x: F.binary_cross_entropy(x, x),
    aten.clamp_max.Tensor: lambda x: torch.clamp_max(x, x.flip(0)),
    aten.fft_fft.default: lambda x: torch.fft.fft(x).abs(),
    aten.isfinite.default: lambda x: torch.isfinite(x),
    aten.linalg_norm.default: lambda x: torch.linalg.norm(x),
    aten.nll_loss_forward.default: lambda x: F.nll_loss(x, torch.tensor([1, 2, -100, 0])),
    aten.permute_copy.default: lambda x: torch.permute_copy(x, (1, 0)),
    aten.t_copy.default: lambda x: torch.t_copy(x),
    aten.transpose_copy.int: lambda x: torch.transpose_copy(x, 0, 1),
    aten.unbind_copy.int: lambda x: torch.unbind_copy(x),
    aten.unsqueeze_copy.default: lambda x: torch.unsqueeze_copy(x, 0),
    aten.xlogy.Tensor: lambda x: torch.xlogy(x, x),
}


@pytest.mark.parametrize("operator", PROGRAMS, ids=str)
def test_the_operator_cannot_be_kept_whole(operator):
    assert operator in DECOMPOSED_THOUGH_KNOWN
    with extend_aot_decompositions(remove_ops=[operator]):
        output = aot.export(PROGRAMS[operator], args=(X,))
    with pytest.raises(aot.CompileError):
        output.compile(optimization_level=0)
