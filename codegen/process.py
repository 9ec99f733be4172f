"""Child processes: a compile with IREE that may crash without harm, and ends with its parent."""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iree.compiler.api import Session

from .compat import compile_tool, initialize
from .errors import CompilerFailed, CompilerTimedOut
from .passes import PhasePasses
from .session import compile_with

_PR_SET_PDEATHSIG = 1
"""Linux's `prctl` that has a signal sent to a process when its parent ends."""

_PROGRAM = """\
import sys
sys.path[:] = filter(None, sys.path)  # the current folder may hold a json.py
import json
sys.path[:] = json.loads(sys.argv[1])
sys.modules["numpy"] = None  # the bindings would load it, and need it for nothing here
from {} import main
main()
"""


def compile_file_isolated(
    source: Path,
    target: Path,
    flags: Sequence[str],
    passes: PhasePasses | None = None,
    *,
    timeout_s: float | None = None,
) -> None:
    """Compile in a child process, so that a crash of the compiler raises `CompilerFailed`.

    Args:
        source: The module, text or bytecode.
        target: The file to write.
        flags: Flags of `iree-compile`, those of MLIR and LLVM among them.
        passes: The passes to run between the phases; None: none.
        timeout_s: The most seconds that it may take; None: no limit.

    Raises:
        CompilerFailed: The compiler refused a flag or the module, or crashed.
        CompilerTimedOut: It took longer, and was ended.
    """
    if passes is None:
        tool = compile_tool()  # starts faster than Python
        command = [str(tool), str(source), "-o", str(target), *flags]
    else:
        program = _PROGRAM.format(__name__)
        stated = json.dumps(dataclasses.asdict(passes))
        child = [sys.executable, "-c", program, json.dumps(sys.path), str(os.getpid()), stated]
        command = [*child, str(source), str(target), *flags]
    status, diagnostics = _run(command, timeout_s)
    if status < 0:
        raise CompilerFailed(f"the compiler crashed (signal {-status})\n{diagnostics}")
    if status:
        raise CompilerFailed(diagnostics)


def main() -> None:
    """Compile in the child; the command line has parent, passes, source, target and flags."""
    parent, stated, source, target, *flags = sys.argv[2:]
    _end_with(int(parent))
    initialize("iree-compile", *flags)
    session = Session()
    with session.invocation() as invocation:
        invocation.enable_console_diagnostics()
        try:
            passes = PhasePasses(**json.loads(stated))
            compile_with(session, invocation, Path(source), Path(target), passes)
        except CompilerFailed as error:
            print(error.diagnostics, file=sys.stderr, flush=True)
            os._exit(1)
    os._exit(0)  # without the time that the interpreter's end takes


def _end_with(parent: int) -> None:
    """Let the kernel end this process, with which nothing else can, when its parent ends."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before
        os._exit(1)


def _run(command: Sequence[str], timeout_s: float | None = None) -> tuple[int, str]:
    """Run a tool; return its status and its diagnostics.

    An exception that ends the wait, such as an interrupt or the time limit, kills the tool with all
    processes that it has started, and removes their temporary files.

    Raises:
        CompilerTimedOut: It took longer than `timeout_s`.
    """
    with tempfile.TemporaryDirectory(prefix="pelton-") as folder:
        with subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "TMPDIR": folder},
            start_new_session=True,
        ) as child:
            try:
                diagnostics = child.communicate(timeout=timeout_s)[1]
            except BaseException as error:
                os.killpg(child.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise CompilerTimedOut(f"ended after {timeout_s:g} s") from None
                raise
        return child.returncode, diagnostics


@functools.lru_cache(maxsize=32)
def cpu_target(cpu: str, features: str) -> dict[str, Any]:
    """Return the architecture, name and features of a CPU, as the compiler resolves them.

    Args:
        cpu: As for `--iree-llvmcpu-target-cpu`: `host`, `generic`, or a CPU's name.
        features: As for `--iree-llvmcpu-target-cpu-features`; may be empty.

    Raises:
        CompilerFailed: The compiler does not know the CPU.
    """
    probe = "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = arith.addf %a, %a"
    probe += " : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.mlir")
        source.write_text(probe)
        flags = [
            "--iree-hal-target-backends=llvm-cpu",
            f"--iree-llvmcpu-target-cpu={cpu}",
            f"--iree-hal-dump-executable-sources-to={folder}/sources",
        ]
        if features:
            flags.append(f"--iree-llvmcpu-target-cpu-features={features}")
        compile_file_isolated(source, Path(folder, "probe.vmfb"), flags)
        text = "".join(file.read_text() for file in Path(folder, "sources").iterdir())
    triple = re.search(r'target_triple = "([^"-]+)', text)
    name = re.search(r'[ {]cpu = "([^"]*)"', text)
    stated = re.search(r'cpu_features = "([^"]*)"', text)
    enabled = stated[1].split(",") if stated else []
    return {
        "arch": triple[1] if triple else "unknown",
        "cpu": name[1] if name and name[1] else cpu,
        "features": sorted({f.removeprefix("+") for f in enabled if f.startswith("+")}),
    }
