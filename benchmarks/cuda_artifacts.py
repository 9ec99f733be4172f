"""The suite compiled for CUDA, for every architecture that is listed; needs no GPU.

    python benchmarks/cuda_artifacts.py FOLDER [--arch sm_80 ...] [CASE ...]

Writes FOLDER/ARCH/CASE.vmfb and FOLDER/cuda_artifacts.json. `benchmarks/gpu_check.py FOLDER` runs
them on a machine with a GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path

import torch
from rich.console import Console

from pelton import aot
from pelton.aot.targets.iree import CUDA_ARCHITECTURES
from pelton.cli.export import argument_of
from pelton.cli.inputs import parse_input

sys.path.insert(0, str(Path(__file__).parent))
import suite


def exported(case: suite.Case) -> aot.ExportOutput:
    torch.manual_seed(0)
    specs = [argument_of(parse_input(text)) for text in case.inputs]
    return aot.export(getattr(suite, case.name)(), args=specs)


def compiled(out: aot.ExportOutput, arch: str, path: Path) -> dict[str, object]:
    """Compile for an architecture; return what became of it."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            out.compile(path, target=f"cuda:{arch}", cache_dir=None)
    except aot.CompileError as error:
        return {"error": str(error)[:500]}
    return {
        "seconds": round(time.perf_counter() - start, 1),
        "bytes": path.stat().st_size,
        "notes": [str(note.message)[:300] for note in notes],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--arch", nargs="+", default=list(CUDA_ARCHITECTURES))
    options = parser.parse_args()
    console = Console()
    found: dict[str, dict[str, object]] = {}
    for case in suite.SUITE:
        if options.cases and case.name not in options.cases:
            continue
        out = exported(case)
        for arch in options.arch:
            folder = options.folder / arch
            folder.mkdir(parents=True, exist_ok=True)
            told = compiled(out, arch, folder / f"{case.name}.vmfb")
            found.setdefault(case.name, {})[arch] = told
            console.print(f"{case.name} {arch}: {told}", soft_wrap=True, markup=False)
    (options.folder / "cuda_artifacts.json").write_text(json.dumps(found, indent=1))
    failed = sum("error" in told for rows in found.values() for told in rows.values())
    console.print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
