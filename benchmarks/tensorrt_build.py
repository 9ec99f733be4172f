"""What an engine costs: layers of a GPT block, time and memory, beside torch.onnx and the parser.

A GPT for any batch from 1 to 8 and any length from 1 to 64, compiled by TensorRT-RTX without a
GPU. The peer is what a user would write by hand: `torch.onnx.export(dynamo=True)` with its own
optimiser and its default opset, the parser, attention marked decomposable, the builder. Each run is
a process of its own, in turns; the bound is 1.3 times the peer's CPU seconds.

    python benchmarks/tensorrt_build.py [--layers 12] [--width 768] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))
from models import GPT

BOUND = 1.3
BATCH, LENGTH = (1, 4, 8), (1, 16, 64)

Measured = dict[str, float]


def with_pelton(model: torch.nn.Module, folder: Path) -> int:
    """Compile with Pelton; return the layers of the network."""
    from pelton import aot
    from pelton.runtime.artifacts.trtm import open_trtm

    batch, length = aot.NamedDimension("batch", *BATCH), aot.NamedDimension("length", *LENGTH)
    out = aot.export(model, args=[aot.InputInfo((batch, length), torch.int64)])
    out.compile(folder / "m.trtm", target="tensorrt")
    (function,) = open_trtm(folder / "m.trtm").manifest.functions
    return int(function.report["layers"])


def by_hand(model: torch.nn.Module, folder: Path) -> int:
    """Compile with torch.onnx and TensorRT's own interface; return the layers of the network."""
    import tensorrt_rtx as trt

    dims = {name: torch.export.Dim(name, min=b[0], max=b[2])
            for name, b in (("batch", BATCH), ("length", LENGTH))}  # fmt: skip
    example = torch.zeros(BATCH[1], LENGTH[1], dtype=torch.int64)
    program = torch.onnx.export(
        model, (example,), dynamo=True, verbose=False,
        dynamic_shapes=({0: dims["batch"], 1: dims["length"]},),
    )  # fmt: skip
    assert program is not None
    path = folder / "m.onnx"
    program.save(path, external_data=True)
    logger = trt.Logger(trt.Logger.ERROR)
    builder = trt.Builder(logger)
    network = builder.create_network(0)
    parser = trt.OnnxParser(network, logger)
    assert parser.parse_from_file(str(path))
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        if layer.type == trt.LayerType.ATTENTION_INPUT:
            layer.__class__ = trt.IAttentionInputLayer
            layer.attention.decomposable = True
    config = builder.create_builder_config()
    profile = builder.create_optimization_profile()
    name = network.get_input(0).name
    profile.set_shape(name, *zip(BATCH, LENGTH, strict=True))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    (folder / "m.engine").write_bytes(memoryview(plan))
    return int(network.num_layers)


TOOLS: dict[str, Callable[[torch.nn.Module, Path], int]] = {
    "pelton": with_pelton,
    "torch.onnx + parser": by_hand,
}


def measure(tool: str, layers: int, width: int) -> Measured:
    """Compile once in this process."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    model = GPT(layers=layers, width=width).eval()
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start, cpu = time.perf_counter(), time.process_time()
        count = TOOLS[tool](model, Path(folder))
        seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        size = sum(f.stat().st_size for f in Path(folder).iterdir() if f.suffix in SUFFIXES)
    return {"layers": count, "seconds": seconds, "CPU seconds": cpu, "memory_mb": grown / 1024,
            "file_mb": size / 1e6}  # fmt: skip


SUFFIXES = (".trtm", ".engine")


def in_a_process(tool: str, layers: int, width: int) -> Measured:
    command = [
        sys.executable,
        __file__,
        "--tool",
        tool,
        "--layers",
        str(layers),
        "--width",
        str(width),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: Measured = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tool", choices=TOOLS, help="measure one in this process")
    options = parser.parse_args()
    if options.tool:
        print(json.dumps(measure(options.tool, options.layers, options.width)))
        return 0
    runs: dict[str, list[Measured]] = {tool: [] for tool in TOOLS}
    for _ in range(options.rounds):
        for tool, found in runs.items():
            found.append(in_a_process(tool, options.layers, options.width))
    medians: dict[str, dict[str, Any]] = {
        tool: {key: statistics.median(run[key] for run in found) for key in found[0]}
        for tool, found in runs.items()
    }
    table = Table(title=f"a GPT of {options.layers} layers of width {options.width}")
    for column in ("tool", "layers", "per block", "CPU s", "s", "memory, MB", "file, MB"):
        table.add_column(column, justify="left" if column == "tool" else "right")
    for tool, m in medians.items():
        table.add_row(
            tool, f"{m['layers']:.0f}", f"{m['layers'] / options.layers:.0f}",
            f"{m['CPU seconds']:.1f}", f"{m['seconds']:.1f}", f"{m['memory_mb']:.0f}",
            f"{m['file_mb']:.0f}",
        )  # fmt: skip
    Console().print(table)
    ratio = medians["pelton"]["CPU seconds"] / medians["torch.onnx + parser"]["CPU seconds"]
    print(f"CPU seconds, pelton to the peer: {ratio:.2f} (bound {BOUND})")
    return 0 if ratio <= BOUND else 1


if __name__ == "__main__":
    sys.exit(main())
