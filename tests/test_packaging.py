"""The wheel is whole, and what it installs runs without torch and without a compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import venv
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from pelton import aot

ROOT = Path(__file__).parent.parent
PACKAGES = ("aot", "cli", "codegen", "runtime")
NEEDED_BY_RUNTIME = ("numpy", "ml_dtypes", "iree-base-runtime")


def run(command: list[object], **options: object) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        **options,  # type: ignore[call-overload]
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return str(done.stdout)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of the sources, so that the tree stays clean."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", "dist", "."]
    run(build, cwd=source)
    (path,) = (source / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of a new environment with the wheel and what the runtime needs."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "-c", ROOT / "constraints.txt", *NEEDED_BY_RUNTIME])
    run([*pip, "--no-deps", wheel])
    return python


class Accumulator(torch.nn.Module):
    """Adds what it is given, scaled by a weight, to what it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
        self.register_buffer("total", torch.zeros(3), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x * self.weight)
        return self.total + 0


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a program with state and external parameters."""
    path = tmp_path_factory.mktemp("artifact") / "accumulator.vmfb"
    output = aot.export(Accumulator(), args=(torch.zeros(3),), external_parameters=True)
    output.save_parameters(path.with_suffix(".irpa"))
    output.compile(path)
    return path


def test_wheel_holds_every_module_of_the_tree(wheel: Path) -> None:
    expected = {
        f"pelton/{path.relative_to(ROOT).as_posix()}"
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if name.endswith(".py")}
    assert found == expected


def test_wheel_says_that_its_packages_are_typed(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        assert {f"pelton/{package}/py.typed" for package in PACKAGES} <= set(archive.namelist())


def test_wheel_brings_no_package_of_another_name(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"pelton"}


def test_bare_environment_has_neither_torch_nor_a_compiler(bare: Path) -> None:
    code = "from importlib.util import find_spec as f; print(f('torch'), f('iree.compiler'))"
    assert run([bare, "-c", code]) == "None None\n"


def test_program_runs_in_the_bare_environment(bare: Path, artifact: Path, tmp_path: Path) -> None:
    code = """
        import sys
        import numpy as np
        from pelton import runtime

        exe = runtime.load(sys.argv[1], parameters=sys.argv[2])
        x = np.ones(3, np.float32)
        results = [exe(x), exe(x)]
        state = exe.state["total"]
        exe.state["total"] = np.full(3, 10, np.float32)
        results.append(exe(x))
        exe.reset_state()
        results.append(exe(x))
        assert all(type(result) is np.ndarray for result in (*results, state))
        np.save("results.npy", np.stack([*results, state]))
    """
    command = [bare, "-c", textwrap.dedent(code), artifact, artifact.with_suffix(".irpa")]
    run([*command], cwd=tmp_path)
    once = np.array([1, 2, 3], np.float32)
    expected = np.stack([once, 2 * once, 10 + once, once, 2 * once])
    assert np.array_equal(np.load(tmp_path / "results.npy"), expected)


def test_errors_of_the_runtime_read_the_same_in_the_bare_environment(
    bare: Path, artifact: Path
) -> None:
    code = """
        import sys
        import numpy as np
        from pelton import runtime

        exe = runtime.load(sys.argv[1], parameters=sys.argv[2])
        try:
            exe(np.ones(4, np.float32))
        except runtime.SignatureError as error:
            print(error)
    """
    command = [bare, "-c", textwrap.dedent(code), artifact, artifact.with_suffix(".irpa")]
    assert run(command) == (
        "main(): argument x: dimension 0 is fixed to 3, got 4 "
        "(expected float32[3], got float32[4])\n"
    )


def test_export_without_torch_says_what_to_install(bare: Path) -> None:
    code = """
        try:
            import pelton.aot
        except ImportError as error:
            print(error)
    """
    message = run([bare, "-c", textwrap.dedent(code)])
    assert "torch" in message
    assert "pip install" in message
    assert message.count("\n") == 1
