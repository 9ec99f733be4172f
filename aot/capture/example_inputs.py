"""Example inputs for a signature: random values, equal for equal seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from pelton.runtime.call import sizes
from pelton.runtime.call.signature import ConstantSpec, Leaf, ScalarSpec, Signature, TensorSpec

from ..spec.errors import ExportError

_USUAL_SIZE = 64
"""The size of a dimension of which no optimal one is known, if it may have it."""


def random_tensor(
    shape: Sequence[int], dtype: torch.dtype, generator: torch.Generator
) -> torch.Tensor:
    """Return a tensor: floats normally distributed, integers 0 or 1 (legal as any index), bools.

    Args:
        shape: Its sizes.
        dtype: Its element type.
        generator: The source of random numbers.

    Raises:
        ExportError: The element type cannot be filled.

    Example:
        >>> random_tensor([2], torch.bool, torch.Generator().manual_seed(0)).dtype
        torch.bool
    """
    try:
        if dtype.is_floating_point:
            return torch.randn(shape, generator=generator).to(dtype)
        if dtype.is_complex:
            return torch.randn(shape, generator=generator, dtype=torch.complex64).to(dtype)
        return torch.randint(0, 2, shape, generator=generator).to(dtype)
    except RuntimeError as error:
        raise ExportError(f"no random values of {dtype}: {error}") from error


def example_call(signature: Signature, seed: int = 0) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call that an entry point takes.

    Dynamic sizes are the `opt` of their dimension; where there is none, 64 or the nearest size
    within the bounds.

    Raises:
        ExportError: A tensor has an element type that cannot be filled.
    """
    generator = torch.Generator().manual_seed(seed)
    usual = {dim.name: _usual_size(dim) for dim in signature.dims}
    open_ = (leaf for leaf in signature.inputs if not isinstance(leaf, ConstantSpec))
    return signature.call_form([_value(leaf, usual, generator) for leaf in open_])


def _usual_size(dim: sizes.Dim) -> int:
    if dim.opt is not None:
        return dim.opt
    return max(dim.min, _USUAL_SIZE if dim.max is None else min(dim.max, _USUAL_SIZE))


def _value(leaf: Leaf, usual: Mapping[str, int], generator: torch.Generator) -> Any:
    if isinstance(leaf, TensorSpec):
        shape = [sizes.evaluate(size, usual) or 0 for size in leaf.shape]
        return random_tensor(shape, getattr(torch, leaf.dtype.name), generator)
    assert isinstance(leaf, ScalarSpec)
    if leaf.kind == "int":
        return 1 if leaf.size is None else sizes.evaluate(leaf.size, usual)
    return leaf.kind == "bool" or 1.0
