"""Side effects of raised graphs: assertions that stop a run, and printing."""

from __future__ import annotations

import sys
from typing import Any

import torch

from ...spec.errors import PeltonError


def require(condition: Any, message: str) -> None:
    """Stop with a message unless a condition holds.

    Args:
        condition: A bool, or a tensor of one.
        message: What is wrong otherwise.

    Raises:
        PeltonError: It does not hold.

    Example:
        >>> require(torch.tensor(True), "never said")
    """
    if not condition:
        raise PeltonError(message)


def show(title: str, *tensors: torch.Tensor) -> None:
    """Print tensors to stderr under a title, as compiled programs do.

    Example:
        >>> show("x", torch.tensor(1))  # on stderr: === x ===, and the tensor
    """
    print(f"=== {title} ===", *tensors, sep="\n", file=sys.stderr)
