"""Prefill and decode as two programs of one model, which share its weights and its KV cache.

Three steps that need not be in one place: trace the programs and save them; load them without the
model's code, and compile; run the artifact without PyTorch. The tokens must be those of eager
PyTorch, one by one. The model is random, so they mean nothing.

    python samples/prefill_decode.py --tokens 32
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
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

    layers: int = 2
    heads: int = 4
    width: int = 128
    vocabulary: int = 512
    context: int = 64


class Block(nn.Module):
    """One transformer layer with a cache of its own."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm_1, self.norm_2 = nn.LayerNorm(config.width), nn.LayerNorm(config.width)
        self.qkv = nn.Linear(config.width, 3 * config.width)
        self.out = nn.Linear(config.width, config.width)
        self.up = nn.Linear(config.width, 4 * config.width)
        self.down = nn.Linear(4 * config.width, config.width)
        shape = (config.heads, config.context, config.width // config.heads)
        self.register_buffer("keys", torch.zeros(shape), persistent=False)
        self.register_buffer("values", torch.zeros(shape), persistent=False)

    def forward(self, x: Tensor, places: Tensor) -> Tensor:
        """Return the layer's output for tokens that stand at `places` of the context."""
        count, width = x.shape
        heads = self.qkv(self.norm_1(x)).view(count, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(1, 2, 0, 3).unbind(0)
        self.keys.index_copy_(1, places, key)
        self.values.index_copy_(1, places, value)
        seen = torch.arange(self.keys.shape[1]) <= places[:, None]
        mixed = F.scaled_dot_product_attention(query, self.keys, self.values, attn_mask=seen)
        x = x + self.out(mixed.transpose(0, 1).reshape(count, width))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class Gpt(nn.Module):
    """A GPT whose output layer is tied to its embedding, and which knows how far it has read."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.context, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.register_buffer("length", torch.zeros(1, dtype=torch.int64), persistent=False)

    def forward(self, tokens: Tensor) -> Tensor:
        """Read tokens that follow those read before; return the next."""
        places = self.length + torch.arange(tokens.shape[0])
        x = self.tokens(tokens) + self.positions(places)
        for block in self.blocks:
            x = block(x, places)
        self.length.add_(tokens.shape[0])
        return self.head(self.norm(x[-1:])).argmax(dim=-1)


def programs_of(gpt: Gpt) -> aot.FxProgramsBuilder:
    """Return the programs of a model: `prefill` for a prompt of any length, `decode`, `length`."""
    programs = aot.FxProgramsBuilder(gpt)
    prompt = aot.NamedDimension("prompt", 1, 16, gpt.config.context)

    @programs.export_program(args=[aot.InputInfo((prompt,), torch.int64)])
    def prefill(model: Gpt, tokens: Tensor) -> Tensor:
        model.length.zero_()
        return model(tokens)

    @programs.export_program(args=[torch.zeros(1, dtype=torch.int64)])
    def decode(model: Gpt, token: Tensor) -> Tensor:
        return model(token)

    @programs.export_program
    def length(model: Gpt) -> Tensor:
        return model.length.clone()

    return programs


def generate(prefill, decode, prompt, count: int) -> list[int]:
    """Return `count` tokens after a prompt, greedily; for eager and compiled functions alike."""
    token = prefill(prompt)
    made = [int(token)]
    while len(made) < count:
        token = decode(token)
        made.append(int(token))
    return made


COMPILE = """
import sys
from pelton import aot
aot.export(aot.FxPrograms.load(sys.argv[1])).compile(sys.argv[2])
"""

RUN = """
import json, sys
sys.modules["torch"] = None  # an import of torch fails
import numpy as np
from pelton import runtime
path, prompt, count = json.loads(sys.argv[1])
gpt = runtime.load(path)
token = gpt.prefill(np.array(prompt))
made = [int(token[0])]
while len(made) < count:
    token = gpt.decode(token)
    made.append(int(token[0]))
print(json.dumps([made, int(gpt.length()[0])]))
"""


def in_new_process(code: str, *arguments: str) -> str:
    """Run code in another process and return what it prints."""
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout


def main(arguments: list[str] | None = None) -> int:
    """Run the sample; return 0 if all tokens are equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=32, help="how many tokens to generate")
    parser.add_argument("--out", type=Path, help="folder for the files; default: a temporary one")
    options = parser.parse_args(arguments)
    torch.manual_seed(0)
    gpt = Gpt(Config(context=16 + options.tokens)).eval().requires_grad_(False)
    prompt = torch.randint(gpt.config.vocabulary, (8,))
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        description, artifact = folder / "gpt.json", folder / "gpt.vmfb"
        programs = programs_of(gpt)
        shared = programs.save(description)
        in_new_process(COMPILE, str(description), str(artifact))
        request = json.dumps([str(artifact), prompt.tolist(), options.tokens])
        made, length = json.loads(in_new_process(RUN, request))
        sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    with torch.inference_mode():
        expected = generate(lambda tokens: gpt(tokens), gpt, prompt, options.tokens)
    table = Table(title="Files")
    table.add_column("")
    table.add_column("KiB", justify="right")
    weights = sum(p.nbytes for p in gpt.parameters())  # tied ones once
    for name, nbytes in {"(weights in memory)": weights, **sizes}.items():
        table.add_row(name, f"{nbytes / 1024:.0f}")
    console = Console()
    console.print(table)
    names = ", ".join(programs.programs)
    console.print(f"{names}: {shared} tensors shared; {length} tokens read")
    equal = made == expected and length == len(prompt) + options.tokens - 1
    console.print("token by token equal" if equal else f"DIFFERENT: {made} against {expected}")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
