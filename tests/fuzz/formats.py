"""The formats that are fuzzed: one entry for each. A new format is one more entry."""

from __future__ import annotations

import io
import os
import signal
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .mutations import Mutator, mutate_bytes, mutate_json


@dataclass(frozen=True)
class Format:
    """A format that is fuzzed.

    Attributes:
        suffix: Of its files.
        sample: Writes a sound file.
        read: Reads a file as users do; returns anything.
        mutate: Changes the bytes.
        right: Tells whether what was read of a changed file that was accepted can be: changes that
            go unnoticed must be of no consequence. None: any value may be right.
    """

    suffix: str
    sample: Callable[[Path], Any]
    read: Callable[[Path], Any]
    mutate: Mutator = mutate_bytes
    right: Callable[[Any], bool] | None = None


def _weights() -> dict[str, Any]:
    return {"weight": np.arange(12, dtype=np.float32).reshape(3, 4), "bias": np.ones(3, np.float16)}


def _write_archive(path: Path) -> None:
    from pelton.runtime.archive import write_archive
    from pelton.runtime.archive.parameter import parameter_of

    write_archive(path, [parameter_of(name, value) for name, value in _weights().items()])


def _read_archive(path: Path) -> Any:
    from pelton.runtime import open_archive

    found = open_archive(path)
    return {name: found[name].contents().tobytes() for name in found}


def _write_gguf(path: Path) -> None:
    from tests.runtime.archives import gguf_file

    path.write_bytes(gguf_file())


def _program() -> Any:
    import torch

    from pelton import aot

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.arange(64.0).reshape(4, 16))

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"y": (x + 1) @ self.weight, "doubled": x * 2}

    rows = aot.InputInfo((aot.NamedDimension("rows", 1, 2, 8), 4), torch.float32)
    return aot.export(Net(), args=[rows])


def _write_mlirbc(path: Path) -> None:
    _program().save_mlir(path)


def _read_mlir(path: Path) -> Any:
    from pelton import aot

    out = aot.export(path)
    return str(out.signatures), out.parameters


def _write_vmfb(path: Path) -> None:
    _program().compile(path)


def _call(path: Path) -> Any:
    from pelton import runtime

    return runtime.load(path)(np.ones((2, 4), np.float32))


def _is_right(result: Any) -> bool:
    weight = np.arange(64, dtype=np.float32).reshape(4, 16)
    wanted = np.full((2, 4), 2, np.float32) @ weight
    return bool(np.array_equal(result["y"], wanted) and (result["doubled"] == 2).all())


def _mutate_facts(data: bytes, chance: Any) -> bytes:
    """Change what a `.vmfb` says of itself, with sound checksums."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["pelton.json"] = mutate_json(members["pelton.json"], chance)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, contents in members.items():
            archive.writestr(name, contents)
    return buffer.getvalue()


def _read_facts(path: Path) -> Any:
    from pelton.runtime.artifacts.vmfb import check_processor, read_info

    info = read_info(path)
    check_processor(info, str(path))
    return info


def _write_trtm(path: Path) -> None:
    """Write a package whose engine is no engine: it is only run on the reference device."""
    from pelton.runtime.artifacts.entry_points import EntryPoint, Port, member_name
    from pelton.runtime.artifacts.manifest import Manifest
    from pelton.runtime.artifacts.trtm import write_trtm

    program = _program().to_onnx(path.with_suffix(".onnx"))
    members = {
        member_name("engine", "main"): b"an engine",
        member_name("reference", "main"): program.to_bytes(),
    }
    path.with_suffix(".onnx").unlink()
    function = EntryPoint(
        program.signature,
        tuple(map(Port.of, program.inputs)),
        tuple(map(Port.of, program.outputs)),
        members={"engine": "engines/main.engine", "reference": "reference/main.onnx"},
    )
    write_trtm(path, Manifest("rtx", "1.7.1", functions=(function,)), members)


def _call_reference(path: Path) -> Any:
    from pelton import runtime

    return runtime.load(path, device="reference")(np.ones((2, 4), np.float32))


def _mutate_manifest(data: bytes, chance: Any) -> bytes:
    """Change what a package says of itself, in place: members stay where they are."""
    start = data.index(b"{")
    end = data.index(b"PK\x03\x04", start)
    text = data[start:end].rstrip(b"\0")
    changed = mutate_json(text, chance)[: len(text)].ljust(len(text))
    return data[:start] + changed + data[start + len(text) :]


def _read_manifest(path: Path) -> Any:
    from pelton.runtime.artifacts.trtm import open_trtm

    return open_trtm(path).manifest.to_json()


def _write_signature(path: Path) -> None:
    path.write_text(next(iter(_program().signatures.values())).to_json())


def _read_signature(path: Path) -> Any:
    from pelton.runtime.call.binding import Binder
    from pelton.runtime.call.signature import Signature
    from pelton.runtime.errors import ArtifactError, SignatureError

    try:
        signature = Signature.from_json(path.read_bytes().decode(errors="replace"))
    except ArtifactError as error:
        raise ArtifactError(f"{path}: {error}") from error
    binder = Binder(signature)
    try:
        leaves = binder.leaves([np.ones((2, 4), np.float32)], {})
        if not binder.fits(leaves):
            binder.explain(leaves)
    except SignatureError:
        pass  # it now asks for other arguments
    return str(signature), signature.python(), signature.to_json()


FORMATS: dict[str, Format] = {
    "irpa": Format(".irpa", _write_archive, _read_archive),
    "safetensors": Format(".safetensors", _write_archive, _read_archive),
    "gguf": Format(".gguf", _write_gguf, _read_archive),
    "mlirbc": Format(".mlirbc", _write_mlirbc, _read_mlir),
    "mlir": Format(".mlir", _write_mlirbc, _read_mlir),
    "vmfb": Format(".vmfb", _write_vmfb, _call, right=_is_right),
    "vmfb_facts": Format(".vmfb", _write_vmfb, _read_facts, _mutate_facts),
    "trtm": Format(".trtm", _write_trtm, _call_reference, right=_is_right),
    "trtm_manifest": Format(".trtm", _write_trtm, _read_manifest, _mutate_manifest),
    "signature": Format(".json", _write_signature, _read_signature, mutate_json),
}
"""By name."""


def _misbehave(path: Path) -> None:
    """Do what no reader may, by the first byte of a file."""
    kind = path.read_bytes()[0]
    if kind == 1:
        raise ValueError("unexpected")
    if kind == 2:
        bytearray(64 << 20)
    if kind == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    if kind == 4:
        path.with_name("elsewhere").write_bytes(b"")


BROKEN: dict[str, Format] = {
    "broken": Format(
        ".bin",
        lambda path: path.write_bytes(b"\0"),
        _misbehave,
        lambda data, chance: bytes([chance.randrange(5)]),
    )
}
"""A format whose reader does all that is looked for."""
