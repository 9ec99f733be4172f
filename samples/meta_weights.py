"""A language model exported without its weights, which come when the program is loaded.

Models of four sizes, up to 7 billion parameters, are made on torch's meta device, where tensors
have shapes and no data, and exported with external parameters: each in a process of its own, to
show that the memory it takes does not grow with the weights. The smallest is then compiled once and
run with two sets of weights from archives, at three prompt lengths, beside eager PyTorch.

    python samples/meta_weights.py --out out
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from torch import nn

from pelton import aot, runtime

LENGTHS = (1, 7, 64)
TOLERANCE = {"rtol": 1e-3, "atol": 1e-4}

console = Console()


@dataclass(frozen=True)
class Config:
    """The sizes of a decoder of the Llama family."""

    layers: int
    width: int
    hidden: int
    heads: int
    kv_heads: int
    vocabulary: int
    length: int = 2048


CONFIGS = {
    "tiny": Config(2, 64, 176, 4, 2, 256, 128),
    "110M": Config(12, 768, 2048, 12, 12, 32_000),
    "1B": Config(22, 2048, 5632, 32, 4, 32_000),
    "7B": Config(32, 4096, 11_008, 32, 32, 32_000),
}


class Attention(nn.Module):
    """Causal attention with rotary positions and shared keys."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.heads, self.kv_heads = config.heads, config.kv_heads
        self.size = config.width // config.heads
        self.query = nn.Linear(config.width, config.heads * self.size, bias=False)
        self.key = nn.Linear(config.width, config.kv_heads * self.size, bias=False)
        self.value = nn.Linear(config.width, config.kv_heads * self.size, bias=False)
        self.output = nn.Linear(config.heads * self.size, config.width, bias=False)

    def forward(self, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        query = self.query(x).view(batch, length, self.heads, self.size).transpose(1, 2)
        key = self.key(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        value = self.value(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        groups = self.heads // self.kv_heads
        mixed = nn.functional.scaled_dot_product_attention(
            rotate(query, cosines, sines),
            rotate(key, cosines, sines).repeat_interleave(groups, dim=1),
            value.repeat_interleave(groups, dim=1),
            is_causal=True,
        )
        result: torch.Tensor = self.output(mixed.transpose(1, 2).reshape(batch, length, -1))
        return result


def rotate(x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Turn pairs of elements by an angle that grows with the position."""
    first, second = x.chunk(2, dim=-1)
    return x * cosines + torch.cat([-second, first], dim=-1) * sines


class Layer(nn.Module):
    """Attention and a gated feed-forward network, each with a norm before and a sum after."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(config.width, eps=1e-5)
        self.attention = Attention(config)
        self.norm = nn.RMSNorm(config.width, eps=1e-5)
        self.gate = nn.Linear(config.width, config.hidden, bias=False)
        self.up = nn.Linear(config.width, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.width, bias=False)

    def forward(self, x: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), cosines, sines)
        normed = self.norm(x)
        gated: torch.Tensor = nn.functional.silu(self.gate(normed)) * self.up(normed)
        return x + self.down(gated)


class Decoder(nn.Module):
    """A decoder of the Llama family: tokens in, logits of the next token out."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocabulary, config.width)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width, eps=1e-5)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        # Tables are no weights: no checkpoint has them, so they are made here, on the CPU, also
        # where the model is on the meta device, and become part of the program.
        size = config.width // config.heads
        steps = torch.arange(0, size, 2, device="cpu") / size
        positions = torch.arange(config.length, device="cpu")
        angles = torch.outer(positions, 10_000.0**-steps).repeat(1, 2)
        self.register_buffer("cosines", angles.cos(), persistent=False)
        self.register_buffer("sines", angles.sin(), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        length = tokens.shape[1]
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x, self.cosines[:length], self.sines[:length])
        logits: torch.Tensor = self.head(self.norm(x[:, -1]))
        return logits


def export(config: Config) -> tuple[aot.ExportOutput, int]:
    """Export a model that has no weights; return it with the bytes that the weights would take."""
    with torch.device("meta"):
        model = Decoder(config).eval()
    prompt = aot.NamedDimension("length", 1, 32, config.length)
    tokens = aot.InputInfo((1, prompt), torch.int64)
    out = aot.export(model, args=(tokens,), external_parameters=True)
    return out, sum(parameter.nbytes for parameter in model.parameters())


def peak_bytes() -> int:
    """The most memory that this process had, as the kernel counts it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def measure(name: str, folder: Path) -> dict[str, Any]:
    """Export one model in this process; return what it took."""
    export(CONFIGS["tiny"])  # so that all libraries are loaded
    Path("/proc/self/clear_refs").write_text("5")  # and the peak starts at what is there now
    before = peak_bytes()
    start = time.perf_counter()
    out, weights = export(CONFIGS[name])
    seconds = time.perf_counter() - start
    path = folder / f"{name}.mlirbc"
    out.save_mlir(path)
    return {
        "name": name,
        "tensors": sum(len(names) for names in out.parameters.values()),
        "weights": weights,
        "seconds": seconds,
        "module": path.stat().st_size,
        "peak": peak_bytes() - before,
    }


def measured_in_child(name: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--child", name, "--out", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return dict(json.loads(done.stdout))


def run_tiny(folder: Path) -> list[tuple[str, int, float, bool]]:
    """Compile the tiny model once and run it with two sets of weights.

    Returns:
        For each: the archive, the prompt's length, the largest difference from eager, and whether
        it is within the tolerance.
    """
    program = folder / "tiny.vmfb"
    aot.export(folder / "tiny.mlirbc").compile(program)
    rows = []
    for seed, suffix in ((0, ".irpa"), (1, ".safetensors")):
        torch.manual_seed(seed)
        model = Decoder(CONFIGS["tiny"]).eval()
        archive = aot.save_module_parameters(folder / f"tiny-{seed}{suffix}", model)
        executable = runtime.load(program, parameters=archive)
        for length in LENGTHS:
            tokens = torch.randint(0, CONFIGS["tiny"].vocabulary, (1, length))
            with torch.no_grad():
                expected = model(tokens)
            given = executable(tokens)
            difference = (given - expected).abs().max().item()
            rows.append((archive.name, length, difference, within(given, expected)))
    return rows


def within(given: torch.Tensor, expected: torch.Tensor) -> bool:
    return torch.allclose(given, expected, **TOLERANCE)


def print_exports(rows: Sequence[dict[str, Any]]) -> None:
    table = Table(title="Exported without weights")
    for column in ("model", "parameters", "tensors", "weights", "module", "time", "peak memory"):
        table.add_column(column, justify="left" if column == "model" else "right")
    for row in rows:
        count = f"{row['weights'] / 4e6:,.1f} M"
        sizes = decimal(row["weights"]), decimal(row["module"])
        took = f"{row['seconds']:.1f} s", decimal(row["peak"])
        table.add_row(row["name"], count, str(row["tensors"]), *sizes, *took)
    console.print(table)


def print_runs(rows: Sequence[tuple[str, int, float, bool]]) -> None:
    table = Table(title="One program, two sets of weights")
    for column in ("weights", "tokens", "largest difference", "equal to eager"):
        table.add_column(column, justify="left" if column == "weights" else "right")
    for archive, length, difference, equal in rows:
        table.add_row(archive, str(length), f"{difference:.1e}", "yes" if equal else "[red]no[/]")
    console.print(table)


def main(argv: Sequence[str] | None = None) -> int:
    """Export, run, compare; return 1 if numbers differ."""
    parser = argparse.ArgumentParser(description="Export without weights, run with them.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of all files")
    parser.add_argument("--only", nargs="+", choices=list(CONFIGS), default=list(CONFIGS))
    parser.add_argument("--child", choices=list(CONFIGS), help=argparse.SUPPRESS)
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.child:
        print(json.dumps(measure(args.child, args.out)))
        return 0
    names = list(dict.fromkeys(["tiny", *args.only]))
    print_exports([measured_in_child(name, args.out) for name in names])
    runs = run_tiny(args.out)
    print_runs(runs)
    return 0 if all(equal for *_, equal in runs) else 1


if __name__ == "__main__":
    sys.exit(main())
