"""Fake tensors of torch, which have a shape and a dtype but no data."""

from __future__ import annotations

from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._subclasses.fake_impls import op_implementations_dict as fake_implementations
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.fx.passes import shape_prop

__all__ = [
    "FakeTensor",
    "FakeTensorMode",
    "detect_fake_mode",
    "fake_implementations",
    "tensor_metadata",
    "unset_fake_temporarily",
]


def tensor_metadata(tensor: torch.Tensor) -> Any:
    """Return what the importer reads of a tensor as the metadata `tensor_meta` of its node."""
    return shape_prop._extract_tensor_metadata(tensor)
