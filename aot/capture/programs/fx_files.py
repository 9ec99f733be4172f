"""Files of exported programs: a description in JSON, and beside it one archive of their tensors.

The description names the archive by its contents and is written last, so that it always describes
a whole set: a save that fails or is killed leaves the old one. Both can be moved together. Nothing
in them is run, imported or unpickled.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pelton.runtime.call.signature import Signature
from pelton.runtime.files import StrPath, atomic_write
from pelton.runtime.progress import stage

from ...spec.errors import ArtifactError, ExportError
from ...spec.tensor_traits import DeviceAffinity, ExternalTensorTrait
from .call_spec import call_spec, rebuilt
from .export_target import ExportTargetDef
from .graph_json import graph_from_json, graph_to_json
from .tensor_pool import TensorPool, read_tensors

KIND = "pelton.fx_programs"
"""The value of the description's field `format`."""

FORMAT = 1
"""Version of the files. 1: the first."""


def write_programs(
    path: StrPath,
    programs: Mapping[str, ExportTargetDef],
    external: Mapping[str, ExternalTensorTrait],
) -> int:
    """Write programs; tensors that several of them have are stored once.

    Args:
        path: The description; the archive is written beside it.
        programs: The programs by name.
        external: Which tensors are external, by their name in the programs.

    Returns:
        How many tensors were found to be stored already.

    Raises:
        ArtifactError: The folder does not exist, or the path is a folder.
        ExportError: A program cannot be written down; names it.
    """
    path = Path(path)
    if path.is_dir():
        raise ArtifactError(f"cannot write {path}: it is a folder; give the name of a file in it")
    if not path.parent.is_dir():
        raise ArtifactError(f"cannot write {path}: folder {path.parent} does not exist")
    pool = TensorPool(external)
    described = [_describe(name, program, pool) for name, program in programs.items()]
    with stage(f"writing {path}"), _archive(path, pool) as archive:
        body = {"archive": archive, "tensors": pool.records(), "programs": described}
        text = _canonical(body)
        head = {"kind": KIND, "format": FORMAT, "sha256": hashlib.sha256(text).hexdigest()}
        with atomic_write(path) as file:
            file.write(json.dumps(head).encode().removesuffix(b"}") + b', "body": ' + text + b"}")
    return pool.shared


def read_programs(path: StrPath) -> dict[str, ExportTargetDef]:
    """Read what `write_programs` wrote. The tensors are mapped, not read.

    Raises:
        ArtifactError: A file is missing, damaged, or of another version; says which and why.
    """
    path = Path(path)
    body = _read_body(path)
    try:
        with stage(f"reading {path}"):
            about = body["archive"]
            if about["file"] != Path(about["file"]).name:
                raise ArtifactError(f"its archive {about['file']!r} does not lie beside it")
            archive = path.with_name(about["file"])
            _check_archive(archive, about)
            tensors = read_tensors(archive, body["tensors"])
            return {item["name"]: _program(item, tensors) for item in body["programs"]}
    except ArtifactError as error:
        raise ArtifactError(f"{path} cannot be loaded: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise ArtifactError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def _describe(name: str, program: ExportTargetDef, pool: TensorPool) -> dict[str, Any]:
    exported = program.target
    try:
        graph = graph_to_json(exported)
    except ExportError as error:
        raise ExportError(f"program {name!r} cannot be saved: {error}") from error
    devices = program.arg_device or {}
    return {
        "name": name,
        "signature": json.loads(program.signature.to_json()),
        "oblivious": program.oblivious,
        "flat": call_spec(program.signature) is None,
        "arg_device": [[index, d.ordinal, _queues(d)] for index, d in devices.items()],
        "state": {key: pool.add(name, key, tensor) for key, tensor in exported.state_dict.items()},
        "constants": {key: pool.add(name, key, t) for key, t in exported.constants.items()},
        "graph": graph,
    }


def _queues(device: DeviceAffinity) -> list[int] | None:
    return None if device.queues is None else list(device.queues)


def _program(item: Mapping[str, Any], tensors: Mapping[str, Any]) -> ExportTargetDef:
    signature = Signature.from_json(json.dumps(item["signature"]))
    state = {key: tensors[stored] for key, stored in item["state"].items()}
    constants = {key: tensors[stored] for key, stored in item["constants"].items()}
    try:
        exported = graph_from_json(item["graph"], state, constants)
    except ArtifactError as error:
        raise ArtifactError(f"program {item['name']!r} has {error}") from error
    spec = None if item["flat"] else call_spec(signature)
    if spec is not None:
        exported = rebuilt(exported, exported.graph, exported.graph_signature, spec.entry)
    devices = {index: DeviceAffinity(ordinal, q) for index, ordinal, q in item["arg_device"]}
    return ExportTargetDef(exported, signature, devices or None, bool(item["oblivious"]))


def _canonical(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()


def _read_body(path: Path) -> Any:
    """Return the checked contents of a description.

    Raises:
        ArtifactError: It is missing, no such file, of another version, or damaged.
    """
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ArtifactError(f"no such file: {path}") from None
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} is no description of programs: {error}") from error
    if not isinstance(data, dict) or data.get("kind") != KIND:
        raise ArtifactError(f"{path} is no description of programs, as FxPrograms.save writes it")
    if data.get("format") != FORMAT:
        raise ArtifactError(
            f"{path} is of format {data.get('format')!r}, this version of Pelton reads format "
            f"{FORMAT}; export the programs again"
        )
    body = data.get("body")
    if hashlib.sha256(_canonical(body)).hexdigest() != data.get("sha256"):
        raise ArtifactError(f"{path} is damaged: its contents are not those that were written")
    return body


@contextlib.contextmanager
def _archive(path: Path, pool: TensorPool) -> Iterator[dict[str, Any]]:
    """Write the tensors beside a description that is about to be written.

    The archive of the old description is removed once the new one stands; the new archive, where
    writing the description fails.
    """
    old = _old_archive(path)
    temporary = path.with_name(f".{secrets.token_hex(8)}.safetensors")
    try:
        pool.save(temporary)
        digest, size = _digest(temporary)
        final = path.with_name(f"{path.stem}-{digest[:16]}.safetensors")
        known = final.exists()
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)
    try:
        yield {"file": final.name, "sha256": digest, "bytes": size}
    except BaseException:
        if not known:
            final.unlink(missing_ok=True)
        raise
    if old is not None and old != final:
        old.unlink(missing_ok=True)


def _old_archive(path: Path) -> Path | None:
    """Return the archive of the description that is about to be replaced, if it is one of ours."""
    try:
        name = _read_body(path)["archive"]["file"]
        is_ours = name.startswith(f"{path.stem}-") and name == Path(name).name
    except (ArtifactError, KeyError, TypeError, AttributeError):
        return None
    return path.with_name(name) if is_ours else None


def _check_archive(archive: Path, about: Mapping[str, Any]) -> None:
    if not archive.is_file():
        raise ArtifactError(f"its archive {archive.name} is missing; move both files together")
    if archive.stat().st_size != about["bytes"] or _digest(archive)[0] != about["sha256"]:
        raise ArtifactError(f"its archive {archive.name} is damaged or was replaced")


def _digest(path: Path) -> tuple[str, int]:
    """Return the SHA-256 of a file, and its size in bytes."""
    found, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while chunk := file.read(1 << 22):
            found.update(chunk)
            size += len(chunk)
    return found.hexdigest(), size
