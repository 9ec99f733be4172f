"""Contracts of the IREE compiler's Python API."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from iree.compiler.api import Invocation, Session, Source

from pelton.codegen.compat import (
    call_with_diagnostics,
    compile_tool,
    initialize,
    set_first_phase,
    set_last_phase,
)
from tests.contracts import contract

ADD = b"""
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture
def invocation() -> Iterator[Invocation]:
    session = Session()
    session.set_flags("--iree-hal-target-backends=llvm-cpu")
    with session.invocation() as found:
        yield found
    session.close()


def parse(invocation: Invocation, text: bytes) -> bool:
    source = Source.wrap_buffer(invocation.session, text + b"\0")
    return bool(invocation.parse_source(source))


@contract("_mlir_libs/iree-compile", breaks="compiles in a process of their own")
def test_tool_is_the_compiler() -> None:
    done = subprocess.run([compile_tool(), "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "IREE" in done.stdout


@contract("ctypes_dl._initializeGlobalCL", breaks="flags of MLIR and LLVM in isolated compiles")
def test_flags_of_the_whole_process_are_set() -> None:
    def run(flag: str) -> int:
        call = f"{initialize.__name__}('iree-compile', {flag!r})"
        code = f"from {initialize.__module__} import {initialize.__name__}; {call}"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=120)
        return done.returncode

    assert run("--mlir-disable-threading") == 0, "a flag that no session takes"
    assert run("--no-such-flag") != 0


@contract(
    "ireeCompilerInvocationSetCompileFromPhase, ...ToPhase, Invocation._inv_p",
    breaks="passes of ours between IREE's phases",
)
def test_compile_ends_and_begins_at_a_phase(invocation: Invocation) -> None:
    assert parse(invocation, ADD)
    set_last_phase(invocation, "abi")
    assert invocation.execute()
    module_op = invocation.export_module()
    invocation.import_module(module_op)
    after_abi = str(module_op)
    assert "hal.tensor.import" in after_abi and "flow.dispatch" not in after_abi
    set_first_phase(invocation, "abi")
    set_last_phase(invocation, "flow")
    assert invocation.execute()
    after_flow = str(module_op)
    assert "flow.executable" in after_flow
    assert after_flow.count("hal.tensor.import") == after_abi.count("hal.tensor.import")


@contract("ireeCompilerInvocationEnableCallbackDiagnostics", breaks="CompilerFailed's diagnostics")
def test_diagnostics_are_reported(invocation: Invocation, tmp_path: Path) -> None:
    found: list[tuple[int, str]] = []
    held = call_with_diagnostics(invocation, lambda *said: found.append(said))
    assert held is not None, "without the callback, diagnostics go to the console"
    assert not parse(invocation, b"func.func @main() { return %missing : i32 }")
    assert [severity for severity, _ in found] == [2]
    assert "undeclared SSA value" in found[0][1]
