"""The compile cache: hits, keys, limits, damage, and several processes."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.ir.digest import Resources, compile_key, module_digest
from pelton.aot.spec.config import Config
from pelton.aot.targets.cache import CachedArtifact, CacheEntry, CompileCache
from pelton.aot.targets.iree import target as iree_target

FLOAT = torch.float32
KEY, OTHER, THIRD = ("0" * 64, "1" * 64, "2" * 64)


class Compiler:
    """Counts how often it is asked, and writes what it is told to."""

    def __init__(self, data: bytes = b"code" * 100) -> None:
        self.data = data
        self.calls = 0

    def __call__(self, path: Path) -> CachedArtifact:
        self.calls += 1
        path.write_bytes(self.data)
        return CachedArtifact("cpu", ("main",), ("a note",))


@pytest.fixture
def cache(tmp_path: Path) -> CompileCache:
    return CompileCache(tmp_path / "cache", 1 << 20)


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "out.vmfb"


def only_entry(cache: CompileCache) -> CacheEntry:
    (entry,) = cache.entries()
    return entry


def test_second_build_does_not_compile(cache: CompileCache, target: Path) -> None:
    compiler = Compiler()
    first = cache.build(KEY, target, compiler)
    target.unlink()
    assert (
        cache.build(KEY, target, compiler) == first == CachedArtifact("cpu", ("main",), ("a note",))
    )
    assert target.read_bytes() == compiler.data
    assert compiler.calls == 1


def test_other_key_compiles(cache: CompileCache, target: Path) -> None:
    compiler = Compiler()
    cache.build(KEY, target, compiler)
    cache.build(OTHER, target, compiler)
    assert compiler.calls == 2
    assert [entry.key for entry in cache.entries()] == [OTHER, KEY]


@pytest.mark.parametrize("size", [0, 1, (16 << 20) + 3])
def test_artifact_of_any_size(tmp_path: Path, target: Path, size: int) -> None:
    cache, compiler = CompileCache(tmp_path / "cache", 1 << 30), Compiler(os.urandom(size))
    cache.build(KEY, target, compiler)
    second = tmp_path / "second.vmfb"
    cache.build(KEY, second, compiler)
    assert second.read_bytes() == compiler.data
    assert compiler.calls == 1


def test_writing_into_one_output_changes_no_other(
    cache: CompileCache, target: Path, tmp_path: Path
) -> None:
    compiler, second = Compiler(), tmp_path / "second.vmfb"
    cache.build(KEY, target, compiler)
    cache.build(KEY, second, compiler)
    for path in (target, second):
        others = compiler.data
        path.write_bytes(b"mine")
        assert {target, second} - {path}
        assert ({target, second} - {path}).pop().read_bytes() == others
        cache.build(KEY, path, compiler)
        assert path.read_bytes() == compiler.data


def test_output_from_the_cache_is_new(cache: CompileCache, target: Path) -> None:
    """Or `make` would take it for older than what it is made from."""
    cache.build(KEY, target, Compiler())
    os.utime(target, (1, 1))
    compiler = Compiler()
    for _ in range(2):
        start = time.time_ns()
        cache.build(KEY, target, compiler)
        assert target.stat().st_mtime_ns >= start - 20_000_000  # a tick of the file system's clock
        assert target.stat().st_mtime_ns == only_entry(cache).modified_ns
    assert compiler.calls == 0


def flip_a_byte(entry: CacheEntry) -> None:
    data = bytearray(entry.path.read_bytes())
    data[len(data) // 2] ^= 1
    entry.path.write_bytes(data)


def cut_short(entry: CacheEntry) -> None:
    os.truncate(entry.path, entry.size_bytes - 1)


def lose_artifact(entry: CacheEntry) -> None:
    entry.path.unlink()


def damage_facts(entry: CacheEntry) -> None:
    entry.path.with_suffix(".json").write_text('{"format": 1, "made": 3}')


def state_another_format(entry: CacheEntry) -> None:
    facts = entry.path.with_suffix(".json")
    facts.write_text(facts.read_text().replace('"format": 1', '"format": 0'))


@pytest.mark.parametrize(
    "damage", [flip_a_byte, cut_short, lose_artifact, damage_facts, state_another_format]
)
def test_damaged_entry_is_made_again(
    cache: CompileCache, target: Path, damage: Callable[[CacheEntry], None]
) -> None:
    compiler = Compiler()
    cache.build(KEY, target, compiler)
    damage(only_entry(cache))
    for _ in range(2):
        cache.build(KEY, target, compiler)
        assert target.read_bytes() == compiler.data
    assert compiler.calls == 2


def test_touched_entry_is_still_good(cache: CompileCache, target: Path) -> None:
    compiler = Compiler()
    cache.build(KEY, target, compiler)
    os.utime(only_entry(cache).path, (1, 1))
    cache.build(KEY, target, compiler)
    assert compiler.calls == 1


def test_failed_compile_stores_nothing(cache: CompileCache, target: Path) -> None:
    def failing(path: Path) -> CachedArtifact:
        path.write_bytes(b"half")
        raise aot.CompileError("no")

    with pytest.raises(aot.CompileError):
        cache.build(KEY, target, failing)
    assert cache.entries() == []


def test_entries_unused_for_longest_go_first(tmp_path: Path, target: Path) -> None:
    cache, compiler = CompileCache(tmp_path / "cache", 1000), Compiler()
    for age, key in ((3, KEY), (2, OTHER)):
        cache.build(key, target, compiler)
        used = time.time() - age
        os.utime(cache.folder / f"{key}.json", (used, used))
    cache.build(KEY, target, compiler)  # used again: OTHER is the oldest now
    cache.build(THIRD, target, compiler)
    assert {entry.key for entry in cache.entries()} == {KEY, THIRD}
    assert {path.stem for path in cache.folder.iterdir()} == {KEY, THIRD}


def test_artifact_above_the_limit_is_not_kept(tmp_path: Path, target: Path) -> None:
    cache = CompileCache(tmp_path / "cache", 10)
    with pytest.warns(UserWarning, match=r"not kept in the cache: 400 bytes, more than 10"):
        cache.build(KEY, target, Compiler())
    assert cache.entries() == []
    assert target.exists()


def test_what_a_dead_process_left_is_removed(cache: CompileCache, target: Path) -> None:
    cache.build(KEY, target, Compiler())
    left = [f".{OTHER}.artifact.x1", f"{OTHER}.artifact", f"{OTHER}.lock", f".{OTHER}.json.x2"]
    for name in left:
        (cache.folder / name).write_bytes(b"")
        os.utime(cache.folder / name, (1, 1))
    (cache.folder / "notes.txt").write_text("not ours")
    cache.build(THIRD, target, Compiler())
    assert not any((cache.folder / name).exists() for name in left)
    assert (cache.folder / "notes.txt").exists()


def test_clear_removes_all_and_says_what(cache: CompileCache, target: Path) -> None:
    cache.build(KEY, target, Compiler())
    assert [entry.key for entry in cache.clear()] == [KEY]
    assert list(cache.folder.iterdir()) == []
    assert target.exists()


def test_folder_that_cannot_be_made(tmp_path: Path, target: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(aot.ArtifactError, match="cannot make the cache folder"):
        CompileCache(tmp_path / "file" / "cache", 1000).build(KEY, target, Compiler())


def _build_slowly(folder: Path, number: int) -> None:
    def slow(path: Path) -> CachedArtifact:
        with open(folder / "calls", "a") as calls:
            calls.write("x")
        time.sleep(0.3)
        path.write_bytes(b"code")
        return CachedArtifact("cpu")

    CompileCache(folder / "cache", 1000).build(KEY, folder / f"{number}.vmfb", slow)


def test_processes_at_once_compile_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_build_slowly, args=(tmp_path, n)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert (tmp_path / "calls").read_text() == "x"
    assert all((tmp_path / f"{n}.vmfb").read_bytes() == b"code" for n in range(3))


# Keys ---------------------------------------------------------------------------------------------


def exported(scale: float = 1.0, width: int = 256) -> aot.ExportOutput:
    """A module with a small and a large weight."""
    generator = torch.Generator().manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Linear(width, 3))
    for parameter in model.parameters():
        parameter.data = torch.rand(parameter.shape, generator=generator) * scale
    return aot.export(model, args=[aot.InputInfo(((1, 2, 4), width), FLOAT)])


def digest(out: aot.ExportOutput) -> str:
    return module_digest(out.mlir_module, out.exported.resources)


def test_equal_modules_have_one_digest() -> None:
    assert digest(exported()) == digest(exported())


@pytest.mark.parametrize("width", [8, 256])
def test_other_weights_are_another_module(width: int) -> None:
    assert digest(exported(1.0, width)) != digest(exported(2.0, width))


def test_module_from_a_file_is_hashed_whole(tmp_path: Path) -> None:
    digests = []
    for scale in (1.0, 1.0, 2.0):
        exported(scale).save_mlir(tmp_path / "module.mlirbc")
        digests.append(digest(aot.export(tmp_path / "module.mlirbc")))
    assert digests[0] == digests[1] != digests[2]


def test_resources_are_hashed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    resources = Resources({"w": b"abc"})
    first = dict(resources.digests())
    monkeypatch.setattr("pelton.aot.ir.digest._sha256", None)
    assert resources.digests() == first


def identity(target: str = "cpu", **options: Any) -> Any:
    from pelton.aot.targets import find_target

    chosen, implied = find_target(target)
    return chosen.identity(chosen.options({**implied, **options}))


def test_default_level_is_the_level_by_name() -> None:
    assert identity() == identity(optimization_level=iree_target.DEFAULT_LEVEL)


@pytest.mark.parametrize(
    "options",
    [
        {"optimization_level": 1},
        {"target_cpu": "generic"},
        {"target_cpu_features": "+avx2"},
        {"flags": ["--iree-opt-strip-assertions"]},
        {"target": "cuda:sm_80"},
        {"target": "vmvx"},
    ],
)
def test_options_are_part_of_the_key(options: dict[str, Any]) -> None:
    assert compile_key("0", identity(**options)) != compile_key("0", identity())


def test_version_of_the_compiler_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity()
    monkeypatch.setattr(iree_target.importlib.metadata, "version", lambda _: "9.9")
    assert identity() != before


def test_this_processor_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    here, generic = identity(), identity(target_cpu="generic")
    monkeypatch.setattr(iree_target, "cpu_identity", lambda: {"model": "another"})
    assert identity() != here
    assert identity(target_cpu="generic") == generic


def test_file_named_by_a_flag_is_part_of_the_key(tmp_path: Path) -> None:
    library = tmp_path / "library.mlir"
    keys = []
    for text in ("a", "b"):
        library.write_text(text)
        keys.append(identity(flags=[f"--iree-codegen-transform-dialect-library={library}"]))
    assert keys[0] != keys[1]


# With the compiler --------------------------------------------------------------------------------


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes every further use of the compiler an error."""

    def refuse(*_: Any) -> None:
        raise AssertionError("the compiler was run")

    def forbid() -> None:
        for name in ("compile_file", "compile_file_isolated", "cpu_target"):
            monkeypatch.setattr(iree_target, name, refuse)

    return forbid


def test_hit_gives_the_same_bytes_without_the_compiler(
    tmp_path: Path, no_compiler: Callable[[], None]
) -> None:
    first, second = tmp_path / "first.vmfb", tmp_path / "second.vmfb"
    cache = tmp_path / "cache"
    exported(width=8).compile(first, cache_dir=cache)
    no_compiler()
    out = exported(width=8)
    out.compile(second, cache_dir=cache)
    output = out.compile(cache_dir=cache)
    assert first.read_bytes() == second.read_bytes() == bytes(output.map_memory())
    with pytest.raises(AssertionError):
        out.compile(second, cache_dir=None)


def test_executables_come_from_the_configured_cache(
    tmp_path: Path, no_compiler: Callable[[], None]
) -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    with aot.config.using(cache_dir=tmp_path / "cache"):
        first = aot.compile(double, args=[aot.InputInfo((2,), FLOAT)])
        no_compiler()
        second = aot.compile(double, args=[aot.InputInfo((2,), FLOAT)])
        CompileCache(tmp_path / "cache", 0).clear()
        assert first(torch.ones(2)).tolist() == second(torch.ones(2)).tolist() == [2, 2]
    assert list((tmp_path / "cache").iterdir()) == []


def test_notes_are_told_again(tmp_path: Path) -> None:
    out = exported(width=8)
    for _ in range(2):
        with pytest.warns(UserWarning, match="keeps no timings"):
            out.compile(
                tmp_path / "a.vmfb", cache_dir=tmp_path / "c", timing_cache_file_path="timings"
            )


# Settings -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("cache_folder", "x", r"no setting 'cache_folder'; known: cache_dir"),
        ("cache_dir", 3, r"aot\.config\.cache_dir must be a path or None, got 3"),
        ("cache_size_bytes", -1, r"cache_size_bytes must be a number of bytes, got -1"),
        ("cache_size_bytes", "1 GB", r"must be a number of bytes, got '1 GB'"),
    ],
)
def test_wrong_setting_is_explained(name: str, value: Any, message: str) -> None:
    with pytest.raises(aot.ExportError, match=message):
        setattr(Config(), name, value)


def test_settings_come_back_after_an_error() -> None:
    settings = Config(cache_dir="a")
    with pytest.raises(KeyError), settings.using(cache_dir="b", cache_size_bytes=1):
        assert settings.cache_dir == "b"
        raise KeyError
    assert (settings.cache_dir, settings.cache_size_bytes) == ("a", Config().cache_size_bytes)
