"""Child processes: a compile has the results, errors and flags of one in this process."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pelton.codegen import (
    CompilerFailed,
    CompilerTimedOut,
    PhasePasses,
    compile_file,
    compile_file_isolated,
)
from tests.processes import Mark

DOUBLE = """
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = arith.addf %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}
"""
FLAGS = ["--iree-hal-target-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=generic"]
Compile = Callable[..., Any]
PASSES = [None, PhasePasses(), PhasePasses(dynamic_sizes=True)]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "double.mlir"
    path.write_text(DOUBLE)
    return path


@pytest.mark.parametrize("passes", PASSES)
def test_both_ways_give_the_same_bytes(source: Path, passes: PhasePasses | None) -> None:
    here, there = source.with_name("here.vmfb"), source.with_name("there.vmfb")
    compile_file(source, here, FLAGS, passes)
    compile_file_isolated(source, there, FLAGS, passes)
    assert here.read_bytes() == there.read_bytes()


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("compile_it", [compile_file, compile_file_isolated])
def test_a_refused_module_says_why(
    source: Path, passes: PhasePasses | None, compile_it: Compile
) -> None:
    source.write_text(DOUBLE.replace("arith.addf", "arith.andi"))
    with pytest.raises(CompilerFailed) as caught:
        compile_it(source, source.with_name("m.vmfb"), FLAGS, passes)
    assert "operand #0 must be" in caught.value.diagnostics
    assert not source.with_name("m.vmfb").exists()


@pytest.mark.parametrize("passes", PASSES)
@pytest.mark.parametrize("compile_it", [compile_file, compile_file_isolated])
def test_an_unknown_flag_is_named(
    source: Path, passes: PhasePasses | None, compile_it: Compile
) -> None:
    with pytest.raises(CompilerFailed, match="no-such-flag"):
        compile_it(source, source.with_name("m.vmfb"), [*FLAGS, "--no-such-flag"], passes)


@pytest.mark.parametrize("passes", PASSES)
def test_a_process_takes_the_flags_of_mlir_too(source: Path, passes: PhasePasses | None) -> None:
    flags = [*FLAGS, "--mlir-disable-threading"]
    compile_file_isolated(source, source.with_name("m.vmfb"), flags, passes)
    with pytest.raises(CompilerFailed, match="mlir-disable-threading"):
        compile_file(source, source.with_name("m.vmfb"), flags, passes)


def test_a_process_imports_nothing_from_the_current_folder(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "tempfile", "ctypes"):
        (source.parent / f"{name}.py").write_text("raise SystemExit('wrong module')")
    monkeypatch.chdir(source.parent)
    compile_file_isolated(
        source, source.with_name("m.vmfb"), FLAGS, PhasePasses(dynamic_sizes=True)
    )


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A module that the compiler reads for ever: a pipe that nobody writes to."""
    path = tmp_path / "endless.mlir"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("passes", PASSES[:2])
def test_a_compile_that_takes_too_long_is_ended_with_all_that_it_started(
    endless: Path, passes: PhasePasses | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = Mark()
    monkeypatch.setenv("PELTON_TEST_MARK", mark.environment["PELTON_TEST_MARK"])
    with pytest.raises(CompilerTimedOut, match="after 1 s"):
        compile_file_isolated(endless, endless.with_name("m.vmfb"), FLAGS, passes, timeout_s=1)
    monkeypatch.delenv("PELTON_TEST_MARK")
    mark.assert_gone()


PARENT = """
import sys
from pathlib import Path
from pelton.codegen import PhasePasses, compile_file_isolated
source, target, *flags = sys.argv[1:]
compile_file_isolated(Path(source), Path(target), flags, PhasePasses())
"""


def test_a_compile_ends_with_its_parent(endless: Path) -> None:
    mark = Mark()
    command = [sys.executable, "-c", PARENT, str(endless), str(endless) + ".vmfb", *FLAGS]
    parent = subprocess.Popen(command, env=mark.environment)
    end = time.monotonic() + 60
    while not any("process" in line and str(parent.pid) in line for line in mark.processes()):
        assert parent.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    parent.kill()
    parent.wait()
    mark.assert_gone()
