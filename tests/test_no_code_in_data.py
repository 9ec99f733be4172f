"""Files are data: nothing that was read is ever run or unpickled."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FILES = sorted(
    path
    for package in ("aot", "cli", "codegen", "runtime")
    for path in (ROOT / package).rglob("*.py")
)

MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "yaml"}
FUNCTIONS = {"eval", "exec", "compile", "__import__"}
METHODS = {"torch.load", "zipfile.extractall"}

BETWEEN_OWN_PROCESSES = {"aot/build_origin.py": ["pickle"]}
"""What a build sends to the processes that it starts; it is never read from a file."""


def offences(source: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
            names.append(getattr(node, "module", None) or "")
            found += [name for name in names if name.partition(".")[0] in MODULES]
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            found += [name] if name in FUNCTIONS | METHODS or name.endswith(".extractall") else []
            for keyword in node.keywords:
                if keyword.arg == "allow_pickle" and ast.unparse(keyword.value) != "False":
                    found.append("allow_pickle")
            if name.endswith(("read_array", "np.save", "np.load", "numpy.load")):
                stated = {keyword.arg for keyword in node.keywords}
                found += [] if "allow_pickle" in stated else [f"{name} without allow_pickle"]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_nothing_that_is_read_is_run(path: Path) -> None:
    allowed = BETWEEN_OWN_PROCESSES.get(path.relative_to(ROOT).as_posix(), [])
    assert offences(path.read_text()) == allowed


@pytest.mark.parametrize(
    "source",
    ["import pickle", "from marshal import loads", "eval('1')", "torch.load(f)",
     "np.lib.format.read_array(f)", "read_array(f, allow_pickle=True)", "z.extractall()"],
)  # fmt: skip
def test_the_scan_finds_what_it_looks_for(source: str) -> None:
    assert offences(source)
