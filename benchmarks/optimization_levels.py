"""What each optimisation level costs and gives on this processor, beside eager PyTorch.

    python benchmarks/optimization_levels.py [--levels 0 1 2 3 4 5] [--seconds 20] [MODEL ...]

All programs of a model run in turns on one thread, so that they meet the same machine; the fastest
tenth is shown, as it depends least on who else works there. The table in
docs/optimization_levels.md comes from here.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from pelton import aot, runtime

sys.path.insert(0, str(Path(__file__).parent))
from models import GPT
from suite import classifier, mlp


def small_gpt() -> nn.Module:
    return GPT(layers=4, width=256, heads=4, vocabulary=1000, context=256)


LENGTH = aot.NamedDimension("length", 1, 64, 256)


def tokens(length: int) -> torch.Tensor:
    return torch.randint(0, 1000, (1, length))


MODELS: dict[str, tuple[Callable[[], nn.Module], aot.InputInfo, torch.Tensor]] = {
    "resnet": (
        classifier, aot.InputInfo((1, 3, 128, 128), torch.float32),
        torch.randn(1, 3, 128, 128),
    ),
    "gpt, 64 tokens": (small_gpt, aot.InputInfo((1, 64), torch.int64), tokens(64)),
    "gpt, any length: 64": (small_gpt, aot.InputInfo((1, LENGTH), torch.int64), tokens(64)),
    "gpt, any length: 1": (small_gpt, aot.InputInfo((1, LENGTH), torch.int64), tokens(1)),
    "mlp, batch 32": (
        mlp, aot.InputInfo((32, 1024), torch.float32), torch.randn(32, 1024)
    ),
}  # fmt: skip
"""Each model with the spec of its input and the input to run."""


@dataclass
class Candidate:
    """A program to run in turns with the others.

    Attributes:
        run: The program.
        compile_seconds: What its compile took.
        note: Whether IREE was able to compile at the level.
        times: What each call took, in seconds.
    """

    run: Callable[[torch.Tensor], Any]
    compile_seconds: float = 0.0
    note: str = ""
    times: list[float] = field(default_factory=list)

    @property
    def milliseconds(self) -> float:
        """The tenth percentile of the calls."""
        return sorted(self.times)[len(self.times) // 10] * 1e3


def compiled(out: aot.ExportOutput, level: int, path: Path) -> Candidate:
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        start = time.perf_counter()
        out.compile(path, optimization_level=level, cache_dir=None)
        taken = time.perf_counter() - start
    executable = runtime.load(path, device="local-sync")
    return Candidate(executable, taken, "fell back" if notes else "")


def run_in_turns(candidates: list[Candidate], x: torch.Tensor, seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for candidate in candidates:
            candidate.run(x)
            for _ in range(3):
                start = time.perf_counter()
                candidate.run(x)
                candidate.times.append(time.perf_counter() - start)


def measure(name: str, levels: list[int], seconds: float, folder: Path) -> Table:
    make, spec, x = MODELS[name]
    model = make().eval()
    out = aot.export(model, args=[spec])

    def eager(x: torch.Tensor) -> Any:
        with torch.no_grad():
            return model(x)

    candidates = {"eager": Candidate(eager)}
    for level in levels:
        candidates[str(level)] = compiled(out, level, folder / f"{level}.vmfb")
        torch.testing.assert_close(candidates[str(level)].run(x), eager(x), rtol=1e-3, atol=1e-3)
    run_in_turns(list(candidates.values()), x, seconds)
    table = Table("level", "ms", "of eager", "compile s", "", title=name, title_justify="left")
    for level_name, candidate in candidates.items():
        share = candidate.milliseconds / candidates["eager"].milliseconds
        spent = f"{candidate.compile_seconds:.1f}" if candidate.compile_seconds else ""
        table.add_row(
            level_name, f"{candidate.milliseconds:.2f}", f"{share:.0%}", spent, candidate.note
        )
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=", ".join(MODELS))
    parser.add_argument("--levels", nargs="+", type=int, default=[0, 1, 2, 3, 4, 5])
    parser.add_argument("--seconds", type=float, default=20, help="for each model")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        for name in options.models or MODELS:
            Console().print(measure(name, options.levels, options.seconds, Path(folder)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
