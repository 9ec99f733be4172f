"""Forward and backward graphs are compiled; training is that of eager."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ...programs import assert_same
from .test_torch_compile import compiled


def conv_net() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.SiLU(),
        nn.AvgPool2d(2, ceil_mode=True, count_include_pad=False),
        nn.ConvTranspose2d(4, 3, 3, stride=2),
        nn.MaxPool2d(2),
        nn.AdaptiveAvgPool2d((2, 3)),
        nn.Flatten(),
        nn.Linear(18, 5),
    )


def text_net() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    return nn.Sequential(nn.Embedding(10, 8), layer, nn.LayerNorm(8), nn.Linear(8, 10))


def images(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(2, 2, 7, 8), torch.tensor([1, 4])


def texts(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.randint(0, 10, (2, 4))
    return tokens, tokens


def losses(
    model: nn.Module, call: Callable[..., Any], batches: Callable[[int], Any], steps: int
) -> list[float]:
    """Train for a few steps; return the loss of each."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    found = []
    for step in range(steps):
        torch.manual_seed(step)
        inputs, wanted = batches(step)
        loss = F.cross_entropy(call(inputs).flatten(0, -2), wanted.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.parametrize(
    ("make", "batches"), [(conv_net, images), pytest.param(text_net, texts, marks=pytest.mark.deep)]
)
def test_a_training_loop_is_that_of_eager(
    make: Callable[[], nn.Module], batches: Callable[[int], Any]
) -> None:
    model = make()
    eager = copy.deepcopy(model)
    expected = losses(eager, eager, batches, 3)
    assert expected[-1] != expected[0]
    assert losses(model, compiled(model), batches, 3) == pytest.approx(expected, rel=1e-4)
    assert_same(model.state_dict(), eager.state_dict(), rtol=1e-3, atol=1e-5)


OPERATORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "causal attention": lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True),
    "masked attention": lambda x: F.scaled_dot_product_attention(
        x, x, x, attn_mask=torch.zeros(4, 4).masked_fill(torch.eye(4) > 0, -torch.inf)
    ),
    "gelu, norm and indices": lambda x: F.layer_norm(F.gelu(x), (6,))[..., [0, 2, 2]].cumsum(-1),
    "pools": lambda x: F.avg_pool2d(x, 3, 2, 1, divisor_override=5) + F.max_pool2d(x, 3, 2, 1),
    "upsampled": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_gradients_are_those_of_eager(name: str) -> None:
    program = OPERATORS[name]
    x = torch.randn(2, 3, 4, 6, requires_grad=True)
    results = []
    for call in (program, compiled(program)):
        result = call(x)
        weights = torch.linspace(-1, 1, result.numel()).reshape(result.shape)
        results.append((result.detach(), *torch.autograd.grad((result * weights).sum(), x)))
    assert_same(results[1], results[0], atol=2e-5)
