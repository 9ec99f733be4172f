"""Digests of the MLIR, and of some artifacts, of programs of all kinds: proof of a refactoring.

    python benchmarks/ir_digest.py --against benchmarks/ir_digests.json  # after a refactoring
    python benchmarks/ir_digest.py --save benchmarks/ir_digests.json     # after a change of the IR

One line `name digest` is printed for each program of the files `ir_*.py` beside this one. A digest
covers the text with its locations, of which paths are left out and line numbers stand for the
source text of their line. The digests of compiles (`name.vmfb`) and of ONNX models (`name.onnx`)
also depend on line numbers: they change when the file of their program is edited.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import linecache
import logging
import re
import sys
import tempfile
import types
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path

import torch

from pelton import aot

HERE = Path(__file__).parent
FILES = ("ir_functions.py", "ir_modules.py", "ir_procedural.py")
COMPILED = (
    "arithmetic", "reductions", "conv_net", "block", "cache", "varied_external", "attention_half",
    "while_loop", "custom_expanded", "fx_programs", "procedural_flow", "procedural_calls",
)  # fmt: skip
"""Programs that are compiled, for one processor wherever it is done."""
ONNX = ("conv_net", "block", "varied", "while_loop", "recurrent")
"""Programs of which an ONNX model is made."""
_PLACE = re.compile(r"(?<![\w./-])([\w./-]+\.py)(\"?):(\d+)")
_PRODUCER = re.compile(r'"producer":\{[^}]*\},')


def programs(file: str) -> types.ModuleType:
    """Run a file of programs under its bare name, so that no location has this folder."""
    module = types.ModuleType(file.removesuffix(".py"))
    sys.modules[module.__name__] = module
    torch.manual_seed(0)
    exec(compile((HERE / file).read_text(), file, "exec"), module.__dict__)
    return module


def digest(*parts: bytes) -> str:
    """Return the start of the SHA-256 of parts."""
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


def text_of(out: aot.ExportOutput) -> str:
    """Return a module's text without versions, and without folders and line numbers."""

    def place(match: re.Match[str]) -> str:
        path, quote, line = match.groups()
        name = path.rpartition("/")[2]
        file = str(HERE / name) if name in FILES else path
        return f"{name}{quote}:<{linecache.getline(file, int(line)).strip()}>"

    text = out.mlir_module.get_asm(enable_debug_info=True, large_elements_limit=None)
    return _PLACE.sub(place, _PRODUCER.sub("", text.replace("\\22", '"')))


def artifact(out: aot.ExportOutput, folder: Path) -> str:
    """Return the digest of a compiled file without the versions of libraries."""
    path = folder / "digest.vmfb"
    out.compile(path, target_cpu="haswell", cache_dir=None)
    with zipfile.ZipFile(path) as members:
        names = [name for name in members.namelist() if name != "pelton.json"]
        return digest(*(part for name in names for part in (name.encode(), members.read(name))))


def onnx_model(out: aot.ExportOutput, folder: Path) -> str:
    """Return the digest of an ONNX model with its weights in it."""
    path = folder / "digest.onnx"
    out.to_onnx(path, external_data=False)
    return digest(path.read_bytes())


def digests(fast: bool, only: list[str], texts: Path | None) -> Iterator[tuple[str, str]]:
    """Yield names and digests: of all programs first, then of what is made of some."""
    kept: dict[str, aot.ExportOutput] = {}
    for name, export in {n: p for f in FILES for n, p in programs(f).PROGRAMS.items()}.items():
        if only and name not in only:
            continue
        torch.manual_seed(0)
        out = export()
        if name in COMPILED or name in ONNX:
            kept[name] = out
        text = text_of(out)
        if texts:
            (texts / f"{name}.mlir").write_text(text)
        yield name, digest(text.encode())
    with tempfile.TemporaryDirectory() as folder:
        for name, out in () if fast else kept.items():
            if name in COMPILED:
                yield f"{name}.vmfb", artifact(out, Path(folder))
            if name in ONNX:
                yield f"{name}.onnx", onnx_model(out, Path(folder))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="store the digests")
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="exit with 1 where they differ"
    )
    parser.add_argument("--fast", action="store_true", help="neither compiles nor ONNX models")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="programs to look at")
    parser.add_argument("--text", type=Path, metavar="FOLDER", help="write the texts there as well")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # of onnxscript
    found = {}
    for name, value in digests(options.fast, options.only, options.text):
        found[name] = value
        print(name, value, flush=True)
    if options.save:
        options.save.write_text(json.dumps(found, indent=1) + "\n")
    return _differences(found, options.against, options.fast or bool(options.only))


def _differences(found: dict[str, str], against: Path | None, partial: bool) -> int:
    stored = json.loads(against.read_text()) if against else found
    names = found.keys() if partial else stored.keys() | found.keys()
    wrong = sorted(name for name in names if found.get(name) != stored.get(name))
    if wrong:
        print("differ:", *wrong, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
