"""Fake tensors of torch, which have a shape and a dtype but no data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._subclasses.fake_impls import op_implementations_dict
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.fx.passes import shape_prop

__all__ = [
    "FakeTensor",
    "FakeTensorMode",
    "detect_fake_mode",
    "implemented",
    "op_implementations_dict",
    "storage_key",
    "tensor_metadata",
    "unset_fake_temporarily",
]


@contextmanager
def implemented(operator: Any, function: Callable[..., Any]) -> Iterator[None]:
    """Let a function compute an operator of fake tensors, within a `with` block.

    Args:
        operator: An operator that torch has a function for.
        function: The function, which takes the mode, the operator and its arguments.
    """
    before = op_implementations_dict[operator]
    op_implementations_dict[operator] = function
    try:
        yield
    finally:
        op_implementations_dict[operator] = before


def tensor_metadata(tensor: torch.Tensor) -> Any:
    """Return what the importer reads of a tensor as the metadata `tensor_meta` of its node."""
    return shape_prop._extract_tensor_metadata(tensor)


def storage_key(tensor: torch.Tensor) -> int:
    """Return a number that tensors share with those of the same memory, fake ones too."""
    return int(tensor.untyped_storage()._cdata)
