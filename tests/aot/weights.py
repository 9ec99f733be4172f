"""A model with all kinds of weights, for the tests of external parameters."""

from __future__ import annotations

import torch
from torch import nn


class Varied(nn.Module):
    """Tied, strided, scalar, bool and bfloat16 weights, a mutated buffer, one that is not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.body = nn.Linear(4, 4)
        self.head = nn.Linear(4, 10, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("mask", torch.tensor([True, False, True, True]))
        self.register_buffer("gain", torch.tensor(2.5))
        self.register_buffer("coarse", torch.randn(4).bfloat16())
        self.register_buffer("strided", torch.randn(4, 4).t())
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("scratch", torch.randn(4), persistent=False)
        self.unused = nn.Linear(2, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        hidden = self.body(self.embed(tokens)) * self.gain + self.coarse.float()
        hidden = torch.where(self.mask, hidden, 0.0) @ self.strided + self.scratch
        logits: torch.Tensor = self.head(hidden)
        return logits + self.count.sum()


NEEDED = {
    "embed.weight", "body.weight", "body.bias", "mask", "gain", "coarse", "strided", "count",
}  # fmt: skip
"""The names that a program of `Varied` asks for: tied weights once, unused ones not at all."""

TOKENS = torch.tensor([1, 2, 3])


def varied(seed: int = 0) -> Varied:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Varied().eval()


def eager(model: nn.Module, *args: torch.Tensor) -> torch.Tensor:
    """What the model computes, with its state put back afterwards."""
    before = {name: value.clone() for name, value in model.state_dict().items()}
    with torch.no_grad():
        result: torch.Tensor = model(*args)
        for name, value in model.state_dict().items():
            value.copy_(before[name])
    return result
