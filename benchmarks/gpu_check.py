"""The suite on a CUDA device: is it right, and how fast is it beside eager and inductor?

    python benchmarks/gpu_check.py FOLDER [--json gpu_check.json] [--minutes 7]

FOLDER is what `benchmarks/cuda_artifacts.py` wrote, on any machine. Needs torch with CUDA, numpy,
`iree-base-runtime` and Pelton's runtime; no compiler. Tensors are torch's on the device, in and
out, without a copy through the host. Where the time is up, what is left is told as such. Status 1
if a result is wrong or a program fails.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pelton import runtime

sys.path.insert(0, str(Path(__file__).parent))
import suite

ROUNDS = 30
WARM_UP = 10
TOLERANCE = 2e-3


def artifact_folder(folder: Path) -> Path:
    """Return the artifacts for this GPU: its own architecture's, or the nearest older one's."""
    major, minor = torch.cuda.get_device_capability()
    own = 10 * major + minor
    known = sorted(int(path.name[3:]) for path in folder.glob("sm_*"))
    fitting = [number for number in known if number <= own]
    if not fitting:
        raise SystemExit(f"{folder} has nothing for sm_{own}: {known}")
    return folder / f"sm_{fitting[-1]}"


def largest_difference(given: Any, expected: Any) -> float:
    pairs = zip(_leaves(given), _leaves(expected), strict=True)
    return max(float((ours - theirs).abs().max()) for ours, theirs in pairs)


def _leaves(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else [x for v in value for x in _leaves(v)]


def median_ms(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Time calls in turns; each is synchronised before and after."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(WARM_UP):
            call()
    for _ in range(ROUNDS):
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            call()
            torch.cuda.synchronize()
            times[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(taken) for name, taken in times.items()}


def check(case: suite.Case, path: Path, with_inductor: bool) -> dict[str, Any]:
    torch.manual_seed(0)
    model = getattr(suite, case.name)()
    model = model.cuda()
    given = case.tensors("cuda")
    executable = runtime.load(path)
    with torch.inference_mode():
        expected = model(*given)
        result = executable(*given)
        difference = largest_difference(result, expected)
        calls = {"eager": lambda: model(*given), "pelton": lambda: executable(*given)}
        if with_inductor:
            compiled = torch.compile(model)
            compiled(*given)
            calls["inductor"] = lambda: compiled(*given)
        times = median_ms(calls)
    on_device = all(leaf.is_cuda for leaf in _leaves(result))
    right = difference <= TOLERANCE and on_device
    return {"milliseconds": times, "difference": difference, "right": right}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path, default=Path("gpu_check.json"))
    parser.add_argument("--minutes", type=float, default=7.0)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("PyTorch finds no CUDA device")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    end = time.monotonic() + options.minutes * 60
    folder = artifact_folder(options.folder)
    found: dict[str, Any] = {
        "gpu": torch.cuda.get_device_name(),
        "capability": torch.cuda.get_device_capability(),
        "artifacts": folder.name,
        "torch": torch.__version__,
        "programs": {},
    }
    for case in suite.SUITE:
        if time.monotonic() > end:
            row: dict[str, Any] = {"skipped": "the time is up"}
        else:
            try:
                # Half of the time is kept for checks; inductor is left out when it is over.
                with_inductor = time.monotonic() < end - options.minutes * 30
                row = check(case, folder / f"{case.name}.vmfb", with_inductor)
            except Exception as error:
                row = {"error": f"{type(error).__name__}: {error}"[:500]}
        found["programs"][case.name] = row
        print(case.name, json.dumps(row), flush=True)
        options.json.write_text(json.dumps(found, indent=1))
    rows = found["programs"].values()
    return 1 if any("error" in row or row.get("right") is False for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
