"""Archives with random damage, in every format."""

import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from iree.runtime import ParameterIndex

from pelton.runtime.archive import (
    gguf,
    irpa,
    open_archive,
    safetensors,
    write_archive,
)
from pelton.runtime.archive.parameter import Parameter
from pelton.runtime.errors import ArtifactError

from .archives import SPLAT, gguf_file, varied_parameters


def bytes_of(suffix: str, folder: Path) -> bytes:
    if suffix == ".gguf":
        return gguf_file()
    splats = [SPLAT] if suffix == ".irpa" else []
    write_archive(folder / f"original{suffix}", [*splats, *varied_parameters()[:3]])
    return (folder / f"original{suffix}").read_bytes()


@pytest.mark.parametrize(
    ("suffix", "read"),
    [
        (".irpa", irpa.read),
        (".safetensors", safetensors.read),
        (".gguf", gguf.read),
    ],
)
def test_mutated_file_is_read_or_refused_cleanly(
    suffix: str, read: Callable[[np.ndarray], list[Parameter]], tmp_path: Path
) -> None:
    original = bytes_of(suffix, tmp_path)
    head = min(len(original), 700)
    chance = random.Random(20240607)
    accepted = []
    tracemalloc.start()
    for _ in range(10_000):
        data = bytearray(original)
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(head)] = chance.choice((0, 1, 0x7F, 0xFF, chance.randrange(256)))
        if chance.random() < 0.1:
            del data[chance.randrange(len(data)) :]
        memory = np.frombuffer(bytes(data), np.uint8)
        try:
            parameters = read(memory)
        except ArtifactError:
            continue
        first = memory.ctypes.data
        for parameter in (p for p in parameters if not p.splat):
            start = parameter.contents().ctypes.data
            assert not parameter.nbytes or first <= start
            assert start + parameter.nbytes <= first + len(memory) or not parameter.nbytes
        accepted.append(bytes(data))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert accepted
    assert peak < sum(map(len, accepted)) + (1 << 20)


@pytest.mark.parametrize("suffix", [".irpa", ".safetensors", ".gguf"])
def test_iree_agrees_on_files_that_are_accepted(suffix: str, tmp_path: Path) -> None:
    original = bytes_of(suffix, tmp_path)
    chance = random.Random(7)
    path = tmp_path / f"mutated{suffix}"
    agreed = 0
    for _ in range(300):
        data = bytearray(original)
        data[chance.randrange(len(original))] = chance.randrange(256)
        path.write_bytes(data)
        try:
            ours = open_archive(path)
        except ArtifactError:
            continue
        index = ParameterIndex()
        index.load(str(path), format=suffix[1:])
        entries = {key: entry for key, entry in index.items() if not entry.is_splat}
        theirs = {key: bytes(entry.file_view) for key, entry in entries.items()}
        stored = {name: p.contents().tobytes() for name, p in ours.items() if name in theirs}
        assert stored == theirs
        agreed += 1
    assert agreed


def test_every_truncation_of_a_file_is_refused_or_loses_nothing(tmp_path: Path) -> None:
    original = bytes_of(".irpa", tmp_path)
    for length in range(0, 900, 7):
        memory = np.frombuffer(original[:length], np.uint8)
        try:
            found = irpa.read(memory)
        except ArtifactError:
            continue
        assert [p.contents().tobytes() for p in found] == [
            p.contents().tobytes() for p in (SPLAT, *varied_parameters()[:3])
        ]
