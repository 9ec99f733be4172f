"""Generate text with a small GPT: the greedy loop and its KV cache inside one compiled module.

The model has random weights, so the tokens mean nothing; what counts is that they are, one by one,
those of eager PyTorch, from a process that has no PyTorch, and how long they take.

    python samples/generate_tokens.py --tokens 64
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn import functional as F

from pelton import aot


@dataclass(frozen=True)
class Config:
    """Sizes of the model: `context` is the number of tokens that the cache holds."""

    layers: int = 4
    heads: int = 4
    width: int = 256
    vocabulary: int = 1024
    context: int = 128

    @property
    def cache_shape(self) -> tuple[int, int, int, int]:
        return (self.layers, self.heads, self.context, self.width // self.heads)


class Block(nn.Module):
    """One transformer layer over new tokens and a cache of the keys and values of earlier ones."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm_1, self.norm_2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.up = nn.Linear(config.width, 4 * config.width)
        self.down = nn.Linear(4 * config.width, config.width)

    def forward(
        self, x: Tensor, keys: Tensor, values: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        count, width = x.shape
        heads = self.qkv(self.norm_1(x)).view(count, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(1, 2, 0, 3).unbind(0)
        scores = (
            torch.cat((query @ keys.transpose(1, 2), query @ key.transpose(1, 2)), dim=-1)
            * query.shape[-1] ** -0.5
        )
        weights = torch.softmax(scores + mask, dim=-1)
        old, new = weights[..., : keys.shape[1]], weights[..., keys.shape[1] :]
        mixed = (old @ values + new @ value).transpose(0, 1).reshape(count, width)
        x = x + self.out(mixed)
        x = x + self.down(F.gelu(self.up(self.norm_2(x))))
        return x, key, value


class Gpt(nn.Module):
    """A GPT that takes new tokens and the cache, and gives the next token and what to cache."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)

    def forward(
        self, tokens: Tensor, keys: Tensor, values: Tensor, position: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the next token, and the keys and values of the new ones.

        Args:
            tokens: The new tokens, int64[count].
            keys: The cached keys, float32[layers, heads, context, width / heads].
            values: The cached values, likewise.
            position: How many tokens the cache holds.
        """
        places = torch.arange(tokens.shape[0]) + position
        x = self.tokens(tokens) + self.positions(places)
        cached = (torch.arange(self.config.context) < position).expand(tokens.shape[0], -1)
        causal = places[:, None] >= places[None, :]
        mask = torch.where(torch.cat((cached, causal), dim=1), 0.0, -1e9)
        new_keys, new_values = [], []
        for layer, block in enumerate(self.blocks):
            x, key, value = block(x, keys[layer], values[layer], mask)
            new_keys.append(key)
            new_values.append(value)
        logits = self.head(self.norm(x[-1:]))
        return logits.argmax(dim=-1), torch.stack(new_keys), torch.stack(new_values)


def eager_generate(gpt: Gpt, prompt: Tensor, count: int) -> list[int]:
    """Return `count` tokens that eager PyTorch generates after a prompt, with a cache."""
    keys, values = torch.zeros(gpt.config.cache_shape), torch.zeros(gpt.config.cache_shape)
    tokens, position, made = prompt, 0, []
    with torch.inference_mode():
        while len(made) < count:
            token, new_keys, new_values = gpt(tokens, keys, values, position)
            keys[:, :, position : position + len(tokens)] = new_keys
            values[:, :, position : position + len(tokens)] = new_values
            position += len(tokens)
            made.append(int(token))
            tokens = token
    return made


def decoder_of(gpt: Gpt) -> type[aot.CompiledModule]:
    """Return the compiled module of a model: `prefill`, `decode`, and `generate` with the loop."""
    cache = aot.AbstractTensor(*gpt.config.cache_shape)
    prompt = aot.InputInfo(
        (aot.NamedDimension("prompt", 1, 8, gpt.config.context),), dtype=torch.int64
    )
    counted = aot.DimensionInputInfo((1, gpt.config.context // 2, gpt.config.context))

    class Decoder(aot.CompiledModule):
        params = aot.export_parameters(gpt)
        keys = aot.export_global(cache, mutable=True)
        values = aot.export_global(cache, mutable=True)
        position = aot.export_global(aot.AbstractI64, mutable=True)

        def prefill(self, tokens=prompt):
            """Start anew with a prompt; return the first token after it."""
            self.position = 0
            return self._advance(tokens)

        def decode(self, token=aot.AbstractTensor(1, dtype=torch.int64)):
            """Add one token; return the next."""
            return self._advance(token)

        def generate(self, tokens=prompt, count=counted):
            """Return `count` tokens after a prompt."""
            made = aot.IREE.tensor_splat(count, value=0, dtype=torch.int64)
            made = aot.IREE.tensor_update(made, self.prefill(tokens), 0)

            def step(number, made):
                token = self.decode(made[number : number + 1])
                return aot.IREE.tensor_update(made, token, number + 1)

            return aot.for_loop(count - 1, step, made)

        def _advance(self, tokens):
            start, count = self.position, tokens.shape[0]
            token, keys, values = self.forward(
                self.params, tokens, self.keys, self.values, self.position
            )
            end = start + count
            self.keys[:, :, start:end] = keys
            self.values[:, :, start:end] = values
            self.position = end
            return token

        @aot.jittable
        def forward(params, tokens, keys, values, position):
            return torch.func.functional_call(gpt, params, (tokens, keys, values, position))

    return Decoder


WITHOUT_TORCH = """
import json, sys, time
sys.modules["torch"] = None  # an import of torch fails
import numpy as np
from pelton import runtime
path, prompt, count, rounds = json.loads(sys.argv[1])
decoder = runtime.load(path)
seconds = []
for _ in range(rounds):
    start = time.perf_counter()
    tokens = decoder.generate(np.array(prompt), count)
    seconds.append(time.perf_counter() - start)
print(json.dumps([tokens.tolist(), min(seconds)]))
"""


def compiled_generate(
    path: Path, prompt: Tensor, count: int, rounds: int
) -> tuple[list[int], float]:
    """Generate from an artifact in a process without PyTorch; return tokens and seconds."""
    request = json.dumps([str(path), prompt.tolist(), count, rounds])
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, request], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    tokens, seconds = json.loads(done.stdout)
    return tokens, seconds


def fastest(function: Callable[[], list[int]], rounds: int) -> tuple[list[int], float]:
    """Return a function's result and the shortest of some timings in seconds."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return result, min(seconds)


def main(arguments: list[str] | None = None) -> int:
    """Run the sample; return 0 if all tokens are equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=64, help="how many tokens to generate")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5, help="how often to time each")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    context = 16 + options.tokens
    gpt = Gpt(Config(layers=options.layers, width=options.width, context=context)).eval()
    prompt = torch.randint(gpt.config.vocabulary, (8,))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "decoder.vmfb")
        aot.export(decoder_of(gpt)).compile(path)
        made, compiled_s = compiled_generate(path, prompt, options.tokens, options.rounds)
    expected, eager_s = fastest(lambda: eager_generate(gpt, prompt, options.tokens), options.rounds)
    table = Table(title=f"{options.tokens} tokens, greedy, with a KV cache")
    for column in ("", "ms", "tokens/s", "beside eager"):
        table.add_column(column, justify="right" if column else "left")
    for name, seconds in (("eager PyTorch", eager_s), ("compiled, no PyTorch", compiled_s)):
        speed = options.tokens / seconds
        table.add_row(name, f"{seconds * 1e3:.1f}", f"{speed:.0f}", f"{eager_s / seconds:.2f} x")
    console = Console()
    console.print(table)
    equal = made == expected
    console.print("token by token equal" if equal else f"DIFFERENT: {made} against {expected}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
