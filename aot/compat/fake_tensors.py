"""Fake tensors of torch, which have a shape and a dtype but no data."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

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
    "tensor_metadata",
    "unset_fake_temporarily",
]


def implemented(operator: Any, function: Callable[..., Any]) -> AbstractContextManager[Any]:
    """Let a function compute an operator of fake tensors, within a `with` block."""
    return patch.dict(op_implementations_dict, {operator: function})


def tensor_metadata(tensor: torch.Tensor) -> Any:
    """Return what the importer reads of a tensor as the metadata `tensor_meta` of its node."""
    return shape_prop._extract_tensor_metadata(tensor)
