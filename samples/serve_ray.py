"""Serve an executable with Ray Serve: requests that arrive together become one batch.

The batch is a dynamic size of the program, so a batch of any size up to the largest is one call.
Clients send one image each, all at the same time; every answer is compared with eager PyTorch, and
the table shows the sizes of the batches that were called.

    pip install 'pelton[ray]'
    python samples/serve_ray.py --clients 16 --requests 64
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import logging
import os
import socket
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray starts: report nothing

import numpy as np
import ray
import torch
from ray import serve
from rich.console import Console
from rich.table import Table
from torch import nn

from pelton import aot, runtime

LARGEST_BATCH = 8
FEATURES = 64


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, 128), nn.ReLU(), nn.Linear(128, 10)).eval()


@serve.deployment(max_ongoing_requests=4 * LARGEST_BATCH)
class Classifier:
    """A compiled program; a replica loads it once and needs neither PyTorch nor a compiler."""

    def __init__(self, path: str) -> None:
        self._executable = runtime.load(path)
        self._batches: collections.Counter[int] = collections.Counter()

    @serve.batch(max_batch_size=LARGEST_BATCH, batch_wait_timeout_s=0.02)
    async def classify(self, rows: list[list[float]]) -> list[list[float]]:
        self._batches[len(rows)] += 1
        batch = np.asarray(rows, np.float32)
        # In a thread: the next requests are gathered while this batch is computed.
        scores = await asyncio.to_thread(self._executable, batch)
        return [row.tolist() for row in scores]

    async def __call__(self, request: Any) -> list[float]:
        return await self.classify(await request.json())

    def batches(self) -> dict[int, int]:
        """Return how many batches there were, by size."""
        return dict(self._batches)


def ask(url: str, row: list[float]) -> list[float]:
    request = urllib.request.Request(url, json.dumps(row).encode())
    with urllib.request.urlopen(request, timeout=60) as answer:
        return list(json.load(answer))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve_and_ask(path: Path, rows: list[list[float]], clients: int) -> tuple[Any, Any, float]:
    """Serve a program to concurrent clients; returns answers, sizes of batches, and seconds."""
    port = free_port()
    logging.getLogger("ray.serve").setLevel(logging.ERROR)
    quiet = {"log_level": "ERROR", "enable_access_log": False}
    ray.init(
        "local",
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        _node_ip_address="127.0.0.1",
    )
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": port}, logging_config=quiet)
        handle = serve.run(Classifier.bind(str(path)))
        with ThreadPoolExecutor(clients) as pool:
            start = time.perf_counter()
            answers = list(pool.map(lambda row: ask(f"http://127.0.0.1:{port}/", row), rows))
            seconds = time.perf_counter() - start
        return answers, handle.batches.remote().result(), seconds
    finally:
        ray.shutdown()  # it was started here, so all that it serves ends with it


def main() -> int:
    parser = argparse.ArgumentParser(description="Serve an executable with Ray Serve.")
    parser.add_argument("--clients", type=int, default=16, help="how many ask at the same time")
    parser.add_argument("--requests", type=int, default=64, help="how many questions they ask")
    args = parser.parse_args()
    model = make_model()
    inputs = torch.randn(args.requests, FEATURES)
    batch = aot.NamedDimension("batch", 1, LARGEST_BATCH // 2, LARGEST_BATCH)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "classifier.vmfb")
        spec = aot.InputInfo((batch, FEATURES), torch.float32)
        aot.export(model, args=(spec,)).compile(path)
        answers, batches, seconds = serve_and_ask(path, inputs.tolist(), args.clients)

    table = Table("batch size", "calls", title=f"{args.requests} requests, {args.clients} clients")
    for size, count in sorted(batches.items()):
        table.add_row(str(size), str(count))
    console = Console()
    console.print(table)
    with torch.no_grad():
        error = float((torch.tensor(answers) - model(inputs)).abs().max())
    console.print(f"{args.requests / seconds:.0f} requests/s; largest difference {error:.1e}")
    batched = max(batches) > 1 and sum(n * count for n, count in batches.items()) == args.requests
    return 0 if error < 1e-4 and batched else 1


if __name__ == "__main__":
    sys.exit(main())
