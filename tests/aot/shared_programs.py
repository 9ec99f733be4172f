"""A language model of a few numbers, with programs that share its weights and its state."""

from __future__ import annotations

import torch
from torch import nn

from pelton import aot

WIDTH, WORDS, CONTEXT = 8, 16, 12
TABLE = torch.linspace(0, 1, 2048)


class Model(nn.Module):
    """Tied weights, a cache that all programs see, and buffers of several kinds."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.words = nn.Embedding(WORDS, WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("cache", torch.zeros(CONTEXT, WIDTH))
        self.register_buffer("length", torch.zeros(1, dtype=torch.int64), persistent=False)
        self.register_buffer("mask", torch.tensor([True, False] * (WIDTH // 2)))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        places = self.length + torch.arange(tokens.shape[0])
        self.cache.index_copy_(0, places, self.words(tokens))
        self.length.add_(tokens.shape[0])
        return self.head(self.cache.sum(0) * self.mask)


def length(model: Model) -> torch.Tensor:
    return model.length.clone()


def prefill(model: Model, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
    model.length.zero_()
    return {"logits": model(tokens) + TABLE[-1]}


def decode(model: Model, token: torch.Tensor, *, scale: float = 2.0) -> torch.Tensor:
    return model(token) * scale + TABLE[-1]


def build(model: Model, *, strict: bool = False) -> aot.FxProgramsBuilder:
    """Return the programs; the first only reads what the others change."""
    programs = aot.FxProgramsBuilder(model)
    programs.export_program(length, strict=strict)
    count = aot.NamedDimension("count", 1, 4, CONTEXT)
    tokens = aot.InputInfo((count,), torch.int64)
    programs.export_program(prefill, args=[tokens], strict=strict)
    programs.export_program(decode, args=[torch.zeros(1, dtype=torch.int64)], strict=strict)
    return programs
