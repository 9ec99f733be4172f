"""IREE's compiler in this process or in a child: one fresh session for each compile."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from iree.compiler.api import Invocation, Output, Session, Source, ctypes_dl

from ..errors import CompileError, SourceLocation, is_user_file, with_lines

_SEVERITIES = ("note", "warning", "error", "remark")
_CALLBACK = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p
)
_STARTUP_LOCK = threading.Lock()


class CompilerFailed(Exception):
    """The compiler refused a module; `diagnostics` is all that it said."""

    def __init__(self, diagnostics: str) -> None:
        super().__init__(diagnostics)
        self.diagnostics = diagnostics


def compile_file(source: Path, target: Path, flags: Sequence[str]) -> None:
    """Compile an MLIR file to VM bytecode in this process.

    Args:
        source: The module, text or bytecode; it is mapped, not copied.
        target: The file to write.
        flags: Flags of `iree-compile`.

    Raises:
        CompilerFailed: The compiler refused a flag or the module.
    """
    session = _new_session(flags)
    said: list[str] = []
    try:
        with session.invocation() as invocation:
            keep = _listen(invocation, said)
            module = Source.open_file(session, str(source))
            if not invocation.parse_source(module) or not invocation.execute():
                raise CompilerFailed("\n".join(said))
            output = Output.open_file(str(target))
            invocation.output_vm_bytecode(output)
            output.keep()
            output.close()
            del keep
    finally:
        session.close()


def compile_file_isolated(source: Path, target: Path, flags: Sequence[str]) -> None:
    """Compile in a child process, so that a crash of the compiler is an error like another.

    Raises:
        CompilerFailed: The compiler refused the module, or crashed.
    """
    tool = Path(ctypes_dl.__file__).parent.parent / "_mlir_libs" / "iree-compile"
    status, said = _run([str(tool), str(source), "-o", str(target), *flags])
    if status < 0:
        raise CompilerFailed(f"the compiler crashed (signal {-status})\n{said}")
    if status:
        raise CompilerFailed(said)


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


def _new_session(flags: Sequence[str]) -> Session:
    with _STARTUP_LOCK:  # the library initialises itself on the first session
        session = Session()
    try:
        session.set_flags(*flags)
    except ValueError as error:
        session.close()
        raise CompilerFailed(str(error)) from error
    return session


def _listen(invocation: Invocation, said: list[str]) -> Any:
    """Collect diagnostics into `said`; return what must live as long as the invocation."""

    def on_diagnostic(severity: int, text: Any, length: int, _: Any) -> None:
        message = ctypes.string_at(text, length).decode(errors="replace")
        said.append(f"{_SEVERITIES[severity % 4]}: {message}")

    callback = _CALLBACK(on_diagnostic)
    enable = getattr(ctypes_dl._dylib, "ireeCompilerInvocationEnableCallbackDiagnostics", None)
    if enable is None:
        invocation.enable_console_diagnostics()
        return None
    enable(ctypes.c_void_p(invocation._inv_p), ctypes.c_int(0), callback, None)
    return callback


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


def compile_error(diagnostics: str, source: Path, flags: Sequence[str], what: str) -> CompileError:
    """Return the error for a failed compile, with a reproducer that stays on disk.

    Args:
        diagnostics: What the compiler said.
        source: The module that it was given; copied to the reproducer.
        flags: The flags that it was given.
        what: What was compiled, for the message.
    """
    folder = Path(tempfile.mkdtemp(prefix="pelton-reproducer-"))
    module = folder / f"module{source.suffix}"
    module.write_bytes(source.read_bytes())
    command = " ".join(["iree-compile", str(module), "-o", "module.vmfb", *map(_quoted, flags)])
    (folder / "command.txt").write_text(command + "\n")
    (folder / "diagnostics.txt").write_text(diagnostics + "\n")
    operators = _operators(diagnostics)
    location = _user_location(diagnostics)
    problem = _first_error(diagnostics)
    listed = ""
    if operators:
        places = with_lines(operators).values()
        listed = f" Operators that could not be lowered: {'; '.join(places)}."
    return CompileError(
        f"{what} failed to compile: {problem}.{listed} "
        f"Reproducer: {folder} (command.txt, diagnostics.txt)",
        diagnostics=diagnostics,
        reproducer=str(module),
        operators=tuple(name for name, _ in operators),
        location=location,
    )


def _quoted(flag: str) -> str:
    return f"'{flag}'" if re.search(r"[^\w=./:,+-]", flag) else flag


def _first_error(diagnostics: str) -> str:
    """Return the first error's own words, without its position and the operation it quotes."""
    lines = diagnostics.splitlines() or ["the compiler gave no reason"]
    found = next((line for line in lines if "error: " in line), lines[0])
    return found.rpartition("error: ")[2].strip()[:300].rstrip(".")


_OPERATOR = re.compile(
    r"failed to legalize (?:unresolved )?operation '(?:torch\.operator' \"|torch\.)([\w.]+)"
    r"|'torch\.((?:aten|prims)\.[\w.]+)' op"
    r'|"torch\.((?:aten|prims|torchvision)\.[\w.]+)"'
)


def _operators(diagnostics: str) -> list[tuple[str, SourceLocation | None]]:
    """Return the torch operators that errors are about, each with the user's line if stated."""
    found: dict[str, SourceLocation | None] = {}
    for line in diagnostics.splitlines():
        match = _OPERATOR.search(line) if "error: " in line else None
        if match is not None:
            name = next(group for group in match.groups() if group)
            found.setdefault(name, _user_location(line))
    return list(found.items())


def _user_location(text: str) -> SourceLocation | None:
    for match in re.finditer(r'"?(/[^":\s]+\.py)"?:(\d+)', text):
        if is_user_file(match[1]):
            return SourceLocation(match[1], int(match[2]))
    return None
