"""How long archives take to open, to load with a program, and to write, and the memory it needs.

    python benchmarks/archives.py [--megabytes 512] [--rounds 5] [--folder DIR]

Writing is compared with a plain sequential write of the same bytes with fsync, in turns, so that
both meet the same disk.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from pelton import aot, runtime
from pelton.runtime.archive import open_archive, write_archive
from pelton.runtime.archive.parameter import CHUNK_BYTES, Parameter, parameter_of

TENSORS = 16
SUFFIXES = (".irpa", ".safetensors")


def parameters_of(megabytes: int) -> list[Parameter]:
    """Random weights of `megabytes` in `TENSORS` parameters."""
    generator = np.random.default_rng(0)
    size = (megabytes << 20) // TENSORS
    return [
        parameter_of(f"layer.{i}.weight", generator.integers(0, 256, size, np.uint8))
        for i in range(TENSORS)
    ]


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def plain_write(path: Path, parameters: list[Parameter]) -> None:
    """Write the same bytes in the same pieces, with fsync and nothing else."""
    with open(path, "wb") as file:
        for parameter in parameters:
            contents = parameter.contents()
            for start in range(0, len(contents), CHUNK_BYTES):
                file.write(contents[start : start + CHUNK_BYTES].data)
        file.flush()
        os.fsync(file.fileno())


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def open_rows(folder: Path, megabytes: int) -> list[tuple[str, ...]]:
    """Opening time by size; the last column compares with the smallest archive."""
    rows = []
    for suffix in SUFFIXES:
        base = 0.0
        for size in (1, max(1, megabytes // 8), megabytes):
            path = folder / f"open{suffix}"
            write_archive(path, parameters_of(size))
            before = resident_bytes()
            archive = open_archive(path)
            touched = resident_bytes() - before
            taken = statistics.median(
                seconds(lambda path=path: open_archive(path)) for _ in range(50)
            )
            base = base or taken
            microseconds, kilobytes = f"{taken * 1e6:.0f} µs", f"{touched / 1024:.0f} kB"
            rows.append((f"{size} MB {suffix}", microseconds, kilobytes, f"{taken / base:.2f}"))
            del archive
            path.unlink()
    return rows


def compile_sum(folder: Path, megabytes: int) -> Path:
    """Compile a program that uses all parameters of `parameters_of`; no weights are needed."""
    size = (megabytes << 20) // TENSORS
    weights = [torch.empty(size, dtype=torch.uint8, device="meta") for _ in range(TENSORS)]
    model = torch.nn.Module()
    model.layer = torch.nn.ModuleList(torch.nn.Module() for _ in weights)
    for layer, weight in zip(model.layer, weights, strict=True):
        layer.register_buffer("weight", weight)
    model.forward = lambda x: sum((layer.weight for layer in model.layer), x)
    path = folder / "program.vmfb"
    example = torch.empty(size, dtype=torch.uint8)
    aot.export(model, args=(example,), external_parameters=True).compile(path)
    return path


def load_rows(folder: Path, megabytes: int) -> list[tuple[str, ...]]:
    """Time of `runtime.load` by size of the archive; the last column is of the smallest."""
    rows = []
    base = 0.0
    for size in (1, max(1, megabytes // 8), megabytes):
        program, path = compile_sum(folder, size), folder / "load.irpa"
        write_archive(path, parameters_of(size))
        runtime.load(program, parameters=path)
        before = resident_bytes()
        executable = runtime.load(program, parameters=path)
        touched = resident_bytes() - before
        taken = min(
            seconds(lambda p=program, a=path: runtime.load(p, parameters=a)) for _ in range(50)
        )
        base = base or taken
        kilobytes = f"{touched / 1024:.0f} kB"
        rows.append((f"{size} MB", f"{taken * 1e3:.2f} ms", kilobytes, f"{taken / base:.2f}"))
        del executable
        path.unlink()
    return rows


def write_rows(folder: Path, megabytes: int, rounds: int) -> list[tuple[str, ...]]:
    """Throughput of the writers; the last column compares with the plain write."""
    parameters = parameters_of(megabytes)
    taken: dict[str, list[float]] = {"plain write + fsync": [], **{s: [] for s in SUFFIXES}}
    for turn in range(rounds):
        names = list(taken)
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            path = folder / f"write{name if name in SUFFIXES else '.bin'}"
            write = write_archive if name in SUFFIXES else plain_write
            taken[name].append(seconds(lambda write=write, path=path: write(path, parameters)))
            path.unlink()
    plain = min(taken["plain write + fsync"])
    return [
        (name, f"{megabytes / min(times):.0f} MB/s", f"{plain / min(times):.2f}")
        for name, times in taken.items()
    ]


def _peak_of_write(path: Path, megabytes: int, answer: multiprocessing.Queue[int]) -> None:
    parameters = parameters_of(megabytes)
    write_archive(path, [parameter_of("warm up", np.zeros(1))])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    write_archive(path, parameters)
    answer.put(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def memory_rows(folder: Path, megabytes: int) -> list[tuple[str, ...]]:
    """Peak memory of a write beyond the weights themselves, in a fresh process each."""
    context = multiprocessing.get_context("spawn")
    rows = []
    for suffix in SUFFIXES:
        path = folder / f"memory{suffix}"
        answer = context.Queue()
        child = context.Process(target=_peak_of_write, args=(path, megabytes, answer))
        child.start()
        rows.append((f"{megabytes} MB {suffix}", f"{answer.get() / 1024:.1f} MB"))
        child.join()
        path.unlink()
    return rows


def show(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    table = Table(title=title)
    for column in columns:
        table.add_column(column, justify="left" if column == columns[0] else "right")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where to write (default: a temporary folder)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as name:
        folder = Path(name)
        opened = open_rows(folder, args.megabytes)
        show("open_archive", ("archive", "time", "memory touched", "of smallest"), opened)
        loaded = load_rows(folder, args.megabytes)
        show("runtime.load", (".irpa", "time", "memory touched", "of smallest"), loaded)
        written = write_rows(folder, args.megabytes, args.rounds)
        show("write_archive (best round)", ("writer", "throughput", "of plain"), written)
        needed = memory_rows(folder, args.megabytes)
        show("write_archive", ("archive", "peak extra memory"), needed)


if __name__ == "__main__":
    main()
