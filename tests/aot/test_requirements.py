"""Required packages: the import of `pelton.aot` without one of them, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pelton.aot import _requirements

SCRIPT = """
import importlib.util, sys
from importlib.machinery import ModuleSpec

find = importlib.util.find_spec

def absent(name, package=None):
    if name == "{missing}" or name.startswith("{missing}."):
        if "{raises}":
            raise ModuleNotFoundError(name)
        return None
    return ModuleSpec(name, None)

importlib.util.find_spec = absent
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"))
"""


def imported(missing: str, raises: str = "") -> subprocess.CompletedProcess[str]:
    """Run the file of the requirements where packages are found, but for one."""
    script = SCRIPT.format(missing=missing, raises=raises)
    file = Path(_requirements.__file__)
    return subprocess.run(
        [sys.executable, "-c", script, str(file)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(
    ("missing", "raises", "module", "package"),
    [
        ("torch", "", "torch", "torch"),
        ("iree.compiler", "", "iree.compiler", "iree-base-compiler"),
        ("iree", "yes", "iree.compiler", "iree-base-compiler"),
    ],
    ids=["torch", "compiler", "namespace"],
)
def test_a_missing_package_is_one_sentence_with_the_command(
    missing: str, raises: str, module: str, package: str
) -> None:
    done = imported(missing, raises)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "MissingDependencyError: " in last
    assert f"pelton.aot needs {module}, which is not installed: pip install {package} (" in last


def test_nothing_is_said_where_all_are_there() -> None:
    done = imported("none.such")
    assert (done.returncode, done.stderr) == (0, "")
    assert "torch" not in _requirements.__dict__  # they are looked for, not imported
