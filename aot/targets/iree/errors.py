"""The error for a compile with IREE that failed: what it is about, and a reproducer."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ...spec.errors import CompileError, SourceLocation
from ...spec.locations import is_user_file, with_lines


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
