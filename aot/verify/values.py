"""The values of inputs: random ones by a seed, and special ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pelton.runtime.call.dtypes import DType
from pelton.runtime.call.signature import ConstantSpec, Leaf, ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import evaluate

from .options import Numerics

Bounds = tuple[int, int]
"""The smallest and the largest value of an integer input, inclusive."""


@dataclass(frozen=True)
class InputPattern:
    """A way to fill inputs: a `kind` of values, and the seed of what is random in it."""

    kind: str
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.kind} {self.seed}" if self.kind == "random" else self.kind


def fillings(options: Numerics) -> list[InputPattern]:
    """Return the ways to fill inputs that the options ask for."""
    found = [InputPattern("random", seed) for seed in options.seeds]
    if options.special_values:
        found += [InputPattern("zeros"), InputPattern("edges", 1)]
    if options.nonfinite:
        found.append(InputPattern("nonfinite", 2))
    return found


_EDGES = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1e-3, -1e-3, 8.0, -8.0, 30.0, -30.0)
"""Where functions bend or saturate."""

_NONFINITE = (math.inf, -math.inf, math.nan, 0.0, 1.0, -1.0)


class InputMaker:
    """Makes the inputs of a function.

    Args:
        signature: The function's signature.
        bounds: The range of each integer input, by its index among the inputs at run time.
    """

    def __init__(self, signature: Signature, bounds: Mapping[int, Bounds]) -> None:
        paths = signature.input_paths()
        self.inputs = [
            (paths[index], leaf)
            for index, leaf in enumerate(signature.inputs)
            if not isinstance(leaf, ConstantSpec)
        ]
        self.bounds = bounds

    def make(self, values: Mapping[str, int], filling: InputPattern) -> list[Any]:
        """Return the input leaves: tensors and numbers.

        Args:
            values: The dynamic sizes.
            filling: How to fill them.
        """
        generator = torch.Generator().manual_seed(filling.seed)
        return [
            self._leaf(leaf, self.bounds.get(index), values, filling, generator)
            for index, (_, leaf) in enumerate(self.inputs)
        ]

    def size_bytes(self, values: Mapping[str, int]) -> int:
        """Return how much memory the inputs take at these sizes."""
        return sum(
            math.prod(shape_of(leaf, values)) * leaf.dtype.itemsize
            for _, leaf in self.inputs
            if isinstance(leaf, TensorSpec)
        )

    def _leaf(
        self,
        leaf: Leaf,
        bounds: Bounds | None,
        values: Mapping[str, int],
        filling: InputPattern,
        generator: torch.Generator,
    ) -> Any:
        if isinstance(leaf, TensorSpec):
            return tensor(leaf.dtype, shape_of(leaf, values), bounds, filling, generator)
        assert isinstance(leaf, ScalarSpec)
        if leaf.size is not None:
            return evaluate(leaf.size, values)
        if leaf.kind == "int":
            low, high = bounds or (1, 4)
            middle = min(max(low, 0), high)
            return middle if filling.kind == "zeros" else _integers((), low, high, generator).item()
        number = _floats((), filling, generator).item()
        return number > 0 if leaf.kind == "bool" else number


def shape_of(spec: TensorSpec, values: Mapping[str, int]) -> list[int]:
    """Return the shape of a tensor at some values of the dynamic sizes."""
    shape = [evaluate(size, values) for size in spec.shape]
    assert all(size is not None for size in shape), (spec, values)
    return [size for size in shape if size is not None]


def tensor(
    dtype: DType,
    shape: Sequence[int],
    bounds: Bounds | None,
    filling: InputPattern,
    generator: torch.Generator,
) -> torch.Tensor:
    """Return a tensor of values.

    Args:
        dtype: Its element type.
        shape: Its shape.
        bounds: For integers: smallest and largest value; None: any small ones.
        filling: How to fill it.
        generator: Gives what is random.
    """
    torch_dtype = getattr(torch, dtype.name)
    if dtype.name == "bool":
        if filling.kind == "zeros":
            return torch.zeros(shape, dtype=torch.bool)
        return torch.randint(0, 2, tuple(shape), generator=generator).to(torch.bool)
    if not torch_dtype.is_floating_point and not torch_dtype.is_complex:
        low, high = bounds or (0, 1)
        if filling.kind == "zeros":
            return torch.full(tuple(shape), min(max(low, 0), high), dtype=torch.int64).to(
                torch_dtype
            )
        return _integers(shape, low, high, generator).to(torch_dtype)
    real = _floats(shape, filling, generator)
    if torch_dtype.is_complex:
        return torch.complex(real, _floats(shape, filling, generator)).to(torch_dtype)
    return real.to(torch_dtype)


def _floats(
    shape: Sequence[int], filling: InputPattern, generator: torch.Generator
) -> torch.Tensor:
    if filling.kind == "random":
        return torch.randn(tuple(shape), generator=generator, dtype=torch.float64)
    if filling.kind == "zeros":
        return torch.zeros(tuple(shape), dtype=torch.float64)
    choices = torch.tensor(_EDGES if filling.kind == "edges" else _NONFINITE, dtype=torch.float64)
    return choices[torch.randint(len(choices), tuple(shape), generator=generator)]


def _integers(
    shape: Sequence[int], low: int, high: int, generator: torch.Generator
) -> torch.Tensor:
    span = min(high, 2**63 - 2) + 1
    return torch.randint(low, span, tuple(shape), generator=generator, dtype=torch.int64)
