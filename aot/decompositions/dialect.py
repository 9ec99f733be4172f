"""Operators of the torch dialect of the installed compiler, and torch's decompositions of others.

An operator of the dialect is not decomposed, so that attention, normalisation and convolution reach
the compiler (and TensorRT) as such; any other operator is decomposed as torch does.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import torch
from iree.compiler import ir

from ..compat.decomposition_tables import (
    composite_decomposition,
    composite_names,
    decomposition_table,
)
from ..compat.operators import OpOverload, schema_of
from .registry import Decomposition, Entry

aten = torch.ops.aten

DECOMPOSED_THOUGH_KNOWN: dict[OpOverload, str] = {
    aten._weight_norm_interface.default: "no lowering",
    aten.alias_copy.default: "no lowering",
    aten.binary_cross_entropy.default: "refused without weights",
    aten.broadcast_tensors.default: "the lowering requires one element type for all tensors",
    aten.clamp_max.Tensor: "no lowering",
    aten.cross_entropy_loss.default: "fails with label smoothing",
    aten.count_nonzero.default: "refused by the verifier of the dialect",
    aten.count_nonzero.dim_IntList: "refused by the verifier of the dialect",
    aten.diagonal_copy.default: "no lowering",
    aten.einsum.default: "the lowering fails on some equations",
    aten.expand_copy.default: "no lowering",
    aten.fft_fft.default: "no lowering",
    aten.fft_ifft.default: "no lowering",
    aten.fft_rfft.default: "no lowering on most sizes",
    aten.float_power.Tensor_Tensor: "NaN for negative numbers and 0 ** 0, and true is -1",
    aten.grid_sampler.default: "wrong numbers",
    aten.im2col.default: "no lowering on some sizes",
    aten.isfinite.default: "no lowering",
    aten.linalg_norm.default: "no lowering",
    aten.cosine_embedding_loss.default: "refused",
    aten.logsumexp.default: "refused with dimensions",
    aten.poisson_nll_loss.default: "refused",
    aten.max_unpool2d.default: "no lowering",
    aten.max_unpool3d.default: "no lowering",
    aten.meshgrid.default: "list results have no lowering",
    aten.meshgrid.indexing: "list results have no lowering",
    aten.native_batch_norm.default: "its empty results have no element type",
    aten.nll_loss2d_forward.default: "fails on most arguments",
    aten.nll_loss_forward.default: "fails on most arguments",
    aten.permute_copy.default: "no lowering",
    aten.split_with_sizes_copy.default: "no lowering",
    aten.squeeze_copy.default: "no lowering",
    aten.squeeze_copy.dim: "no lowering",
    aten.stft.center: "crashes the compiler",
    aten.stft.default: "crashes the compiler",
    aten.t_copy.default: "no lowering",
    aten.transpose_copy.int: "no lowering",
    aten.unbind_copy.int: "no lowering",
    aten.unfold_copy.default: "no lowering",
    aten.unsqueeze_copy.default: "no lowering",
    aten.view_copy.default: "no lowering",
    aten.xlogy.Tensor: "no lowering",
}
"""Operators of the dialect that the compiler cannot lower or lowers wrongly, and the symptom."""


def mlir_name(operator: OpOverload) -> str:
    """Return the operator's name in the torch dialect.

    Example:
        >>> mlir_name(torch.ops.aten.add.Tensor)
        'torch.aten.add.Tensor'
        >>> mlir_name(torch.ops.aten.relu.default)
        'torch.aten.relu'
    """
    name = schema_of(operator).name.replace("::", ".")
    overload = schema_of(operator).overload_name
    return f"torch.{name}.{overload}" if overload else f"torch.{name}"


@lru_cache(maxsize=1)
def _context() -> ir.Context:
    return ir.Context()


def is_known(operator: OpOverload) -> bool:
    """Return whether the torch dialect of the installed compiler has the operator.

    Example:
        >>> is_known(torch.ops.aten.add.Tensor)
        True
    """
    return bool(_context().is_registered_operation(mlir_name(operator)))


def torch_decompositions() -> list[Entry]:
    """Return torch's decompositions of the operators that the compiler cannot lower."""
    return [
        Entry(operator, function, DECOMPOSED_THOUGH_KNOWN.get(operator, "not in the dialect"))
        for operator, function in _all_of_torch().items()
        if not is_known(operator) or operator in DECOMPOSED_THOUGH_KNOWN
    ]


def _all_of_torch() -> dict[OpOverload, Decomposition]:
    """Return all of torch's decompositions; those for export take precedence."""
    exporting: Any = torch.export.default_decompositions()
    return {
        operator: function
        for operator, function in [
            *_composites(),
            *decomposition_table.items(),
            *exporting.items(),
        ]
        if isinstance(operator, OpOverload) and operator.namespace in ("aten", "prims")
    }


def _composites() -> Iterator[tuple[OpOverload, Decomposition]]:
    """Yield the composite ATen operators with their decompositions.

    torch's tables omit composites that may return an alias of their argument.
    """
    for name in composite_names():
        packet, _, overload = name.removeprefix("aten::").partition(".")
        if name.startswith("aten::"):
            operator = getattr(getattr(aten, packet, None), overload or "default", None)
            if isinstance(operator, OpOverload):
                function = composite_decomposition(operator)
                if function is not None:
                    yield operator, function
