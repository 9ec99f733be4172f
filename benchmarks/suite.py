"""The programs that the project's speed is judged by, with random weights.

Each is a function without arguments that makes a model, for `pelton bench suite:NAME` run in this
folder; `SUITE` has the inputs of all.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent))
from models import GPT, Block


def mlp() -> nn.Module:
    """A perceptron of 8 million parameters."""
    return nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).eval()


class ResidualBlock(nn.Module):
    """Two convolutions with batch normalisation, and the input added."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = torch.relu(self.norm1(self.conv1(x)))
        return torch.relu(self.norm2(self.conv2(inner)) + self.shortcut(x))


def classifier() -> nn.Module:
    """A small ResNet."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 7, 2, 3, bias=False),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, 1),
        ResidualBlock(32, 32, 1),
        ResidualBlock(32, 64, 2),
        ResidualBlock(64, 128, 2),
        ResidualBlock(128, 256, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(256, 100),
    ).eval()


LAYERS, WIDTH, HEADS = 4, 256, 4


def gpt_prefill() -> nn.Module:
    """A GPT that reads a prompt."""
    return GPT(LAYERS, WIDTH, HEADS, vocabulary=1000, context=256).eval()


class Decoder(nn.Module):
    """One step of the same GPT: a token, and the keys and values of those before it.

    The new keys and values are results; the caller appends them.
    """

    def __init__(self, gpt: GPT) -> None:
        super().__init__()
        self.gpt = gpt

    def forward(self, token: torch.Tensor, past: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.gpt.tokens(token) + self.gpt.positions.weight[past.shape[4]]
        made = []
        for block, (keys, values) in zip(self.gpt.blocks, past, strict=True):
            x, new = self._block(block, x, keys, values)
            made.append(new)
        return self.gpt.head(self.gpt.norm(x)), torch.stack(made)

    @staticmethod
    def _block(
        block: Block, x: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        heads = (1, 1, block.heads, x.shape[2] // block.heads)
        parts = block.qkv(block.norm1(x)).chunk(3, 2)
        q, k, v = (part.view(heads).transpose(1, 2) for part in parts)
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        mixed = F.scaled_dot_product_attention(q, keys, values)
        x = x + block.out(mixed.transpose(1, 2).reshape(x.shape))
        return x + block.down(F.gelu(block.up(block.norm2(x)))), torch.stack([k, v])


def gpt_decode() -> nn.Module:
    """A GPT that makes one token."""
    return Decoder(GPT(LAYERS, WIDTH, HEADS, vocabulary=1000, context=256)).eval()


class Encoder(nn.Module):
    """Post-norm transformer layers over embedded tokens with a padding mask, as BERT's."""

    def __init__(self, layers: int, width: int, heads: int, vocabulary: int, context: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Parameter(torch.randn(context, width) * 0.02)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu", batch_first=True)
            for _ in range(layers)
        )
        self.pooler = nn.Linear(width, width)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.tokens(tokens) + self.positions[: tokens.shape[1]])
        seen = mask[:, None, None, :]
        for layer in self.layers:
            x = layer.norm1(x + self._attend(layer.self_attn, x, seen))
            x = layer.norm2(x + layer.linear2(F.gelu(layer.linear1(x))))
        return torch.tanh(self.pooler(x[:, 0]))

    @staticmethod
    def _attend(attention: nn.MultiheadAttention, x: torch.Tensor, mask: torch.Tensor):
        batch, length, width = x.shape
        heads = (batch, length, attention.num_heads, width // attention.num_heads)
        mixed = F.linear(x, attention.in_proj_weight, attention.in_proj_bias)
        q, k, v = (part.view(heads).transpose(1, 2) for part in mixed.chunk(3, 2))
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return attention.out_proj(mixed.transpose(1, 2).reshape(x.shape))


def encoder() -> nn.Module:
    """A small BERT."""
    return Encoder(LAYERS, WIDTH, HEADS, vocabulary=1000, context=128).eval()


class DoubleConv(nn.Sequential):
    """Two convolutions with group normalisation."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(
            nn.Conv2d(inputs, outputs, 3, padding=1),
            nn.GroupNorm(8, outputs),
            nn.SiLU(),
            nn.Conv2d(outputs, outputs, 3, padding=1),
            nn.GroupNorm(8, outputs),
            nn.SiLU(),
        )


class UNet(nn.Module):
    """A U-Net of three resolutions."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.down1 = DoubleConv(inputs, width)
        self.down2 = DoubleConv(width, 2 * width)
        self.middle = DoubleConv(2 * width, 4 * width)
        self.lift2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2)
        self.up2 = DoubleConv(4 * width, 2 * width)
        self.up1 = DoubleConv(3 * width, width)
        self.out = nn.Conv2d(width, inputs, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        fine = self.down1(x)
        coarse = self.down2(F.max_pool2d(fine, 2))
        middle = self.lift2(self.middle(F.max_pool2d(coarse, 2)))
        coarse = self.up2(torch.cat([middle, coarse], 1))
        coarse = F.interpolate(coarse, scale_factor=2.0, mode="nearest")
        return self.out(self.up1(torch.cat([coarse, fine], 1)))


def unet() -> nn.Module:
    """A U-Net as in diffusion models."""
    return UNet(3, 32).eval()


class Recurrent(nn.Module):
    """Two layers of LSTM and a classifier of the last state."""

    def __init__(self, inputs: int, width: int, classes: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width, 2, batch_first=True)
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.lstm(x)[0][:, -1])


def lstm() -> nn.Module:
    """An LSTM over 32 steps."""
    return Recurrent(64, 256, 10).eval()


class Detector(nn.Module):
    """Convolutions to a grid of boxes and classes, for images of any size."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, width, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(2 * width, 4 * width, 3, 2, 1),
            nn.ReLU(),
        )
        self.tower = nn.Sequential(nn.Conv2d(4 * width, 4 * width, 3, 1, 1), nn.ReLU())
        self.boxes = nn.Conv2d(4 * width, 4, 3, 1, 1)
        self.classes = nn.Conv2d(4 * width, classes, 3, 1, 1)

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        features = self.tower(self.body(image))
        distances = F.softplus(self.boxes(features)).flatten(2).transpose(1, 2)
        height, width = features.shape[2:]
        rows = torch.arange(height, dtype=torch.float32, device=image.device) * 8 + 4
        columns = torch.arange(width, dtype=torch.float32, device=image.device) * 8 + 4
        y = rows[:, None].expand(height, width).flatten()
        x = columns[None].expand(height, width).flatten()
        centres = torch.stack([x, y], 1)
        boxes = torch.cat([centres - distances[..., :2], centres + distances[..., 2:]], 2)
        return boxes, torch.sigmoid(self.classes(features)).flatten(2).transpose(1, 2)


def detector() -> nn.Module:
    """A detection head whose image has dynamic sizes."""
    return Detector(16, 20).eval()


class StateSpaceLayer(nn.Module):
    """A selective state-space layer in the quadratic form of Mamba 2."""

    def __init__(self, width: int, heads: int, state: int) -> None:
        super().__init__()
        self.heads, self.state = heads, state
        self.norm = nn.RMSNorm(width)
        self.inner = nn.Linear(width, 2 * width + 2 * state + heads)
        self.rate = nn.Parameter(torch.rand(heads))
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        sizes = [width, width, self.state, self.state, self.heads]
        value, gate, read, write, step = self.inner(self.norm(x)).split(sizes, 2)
        step = F.softplus(step).transpose(1, 2)
        elapsed = torch.cumsum(-step * self.rate[:, None].exp(), 2)
        decay = torch.exp((elapsed[..., :, None] - elapsed[..., None, :]).tril()).tril()
        weights = (read @ write.transpose(1, 2))[:, None] * decay * step[..., None, :]
        value = value.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
        mixed = (weights @ value).transpose(1, 2).reshape(batch, length, width)
        return x + self.out(mixed * F.silu(gate))


def state_space() -> nn.Module:
    """A small state-space model."""
    return nn.Sequential(*(StateSpaceLayer(WIDTH, HEADS, 16) for _ in range(LAYERS))).eval()


@dataclass(frozen=True)
class Case:
    """A program of the suite.

    Attributes:
        name: The function of this module that makes it.
        inputs: Its inputs, as `pelton bench --input` takes them; dynamic ones are measured at
            their middle size.
    """

    name: str
    inputs: tuple[str, ...]

    @property
    def program(self) -> str:
        """What `pelton bench` calls it."""
        return f"suite:{self.name}"

    def tensors(self, device: str = "cpu") -> list[torch.Tensor]:
        """Return inputs of the middle size of each range: the same ones each time."""
        generator = torch.Generator().manual_seed(0)
        return [_tensor(text, generator).to(device) for text in self.inputs]


_RANGE = re.compile(r"(?<=x)[a-z]+=\d+\.\.(\d+)\.\.\d+")
_DTYPES = {"f32": torch.float32, "i64": torch.int64, "i1": torch.bool}


def _tensor(text: str, generator: torch.Generator) -> torch.Tensor:
    *sizes, dtype = _RANGE.sub(r"\1", text).split("x")
    shape = [int(size) for size in sizes]
    if dtype == "f32":
        return torch.randn(shape, generator=generator)
    return torch.randint(0, 2, shape, generator=generator).to(_DTYPES[dtype])


SUITE = (
    Case("mlp", ("32x1024xf32",)),
    Case("classifier", ("1x3x128x128xf32",)),
    Case("gpt_prefill", ("1x64xi64",)),
    Case("gpt_decode", ("1x1xi64", f"{LAYERS}x2x1x{HEADS}x64x{WIDTH // HEADS}xf32")),
    Case("encoder", ("2x128xi64", "2x128xi1")),
    Case("unet", ("1x3x64x64xf32",)),
    Case("lstm", ("4x32x64xf32",)),
    Case("detector", ("1x3xheight=32..128..512xwidth=32..160..512xf32",)),
    Case("state_space", ("1x128x256xf32",)),
)
"""All of them."""
