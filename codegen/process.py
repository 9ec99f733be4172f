"""One compile with IREE in a process of its own, so that a crash is an error like another."""

from __future__ import annotations

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
from .errors import CompilerFailed
from .passes import Changes
from .session import compile_with

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
    source: Path, target: Path, flags: Sequence[str], changes: Changes | None = None
) -> None:
    """Compile in a child process, so that a crash of the compiler is an error like another.

    Args:
        source: The module, text or bytecode.
        target: The file to write.
        flags: Flags of `iree-compile`, those of MLIR and LLVM among them.
        changes: What to change on the way; None: nothing.

    Raises:
        CompilerFailed: The compiler refused a flag or the module, or crashed.
    """
    if changes is None:
        tool = compile_tool()  # starts faster than Python
        command = [str(tool), str(source), "-o", str(target), *flags]
    else:
        program = _PROGRAM.format(__name__)
        stated = json.dumps(dataclasses.asdict(changes))
        child = [sys.executable, "-c", program, json.dumps(sys.path), stated]
        command = [*child, str(source), str(target), *flags]
    status, said = _run(command)
    if status < 0:
        raise CompilerFailed(f"the compiler crashed (signal {-status})\n{said}")
    if status:
        raise CompilerFailed(said)


def main() -> None:
    """Compile as the command line says: what to change, source, target, flags; in the child."""
    stated, source, target, *flags = sys.argv[2:]
    initialize("iree-compile", *flags)
    session = Session()
    with session.invocation() as invocation:
        invocation.enable_console_diagnostics()
        try:
            changes = Changes(**json.loads(stated))
            compile_with(session, invocation, Path(source), Path(target), changes)
        except CompilerFailed as error:
            print(error.diagnostics, file=sys.stderr, flush=True)
            os._exit(1)
    os._exit(0)  # nothing is left to do that is worth the time


def _run(command: Sequence[str]) -> tuple[int, str]:
    """Run a tool; return its status and its diagnostics.

    Whatever ends the wait, an interrupt for instance, ends the tool with all that it has started,
    and removes the files that it was working on.
    """
    with tempfile.TemporaryDirectory(prefix="pelton-") as folder:
        child = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            env={**os.environ, "TMPDIR": folder},
            start_new_session=True,
        )
        try:
            said = child.communicate()[1]
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            raise
        return child.returncode, said


@functools.lru_cache(maxsize=32)
def processor_target(cpu: str, features: str) -> dict[str, Any]:
    """Return what the compiler makes of a processor: its name, architecture and features.

    Args:
        cpu: As for `--iree-llvmcpu-target-cpu`: `host`, `generic`, or a processor's name.
        features: As for `--iree-llvmcpu-target-cpu-features`; may be empty.

    Raises:
        CompilerFailed: The compiler does not know the processor.
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
