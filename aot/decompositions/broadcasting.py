"""Broadcasting of vectors along one dimension of a tensor."""

from __future__ import annotations

from torch import Tensor


def along(vector: Tensor, dim: int, rank: int) -> Tensor:
    """Return a vector as a tensor of size 1 in all dimensions but one.

    Args:
        vector: A tensor of rank 1.
        dim: The dimension that it extends along, not negative.
        rank: The number of dimensions.

    Example:
        >>> import torch
        >>> along(torch.ones(5), 1, 3).shape
        torch.Size([1, 5, 1])
    """
    return vector.reshape([-1 if axis == dim else 1 for axis in range(rank)])
