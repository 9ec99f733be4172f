"""The rules of the house: who may import whom, how long files are, what facades hold."""

from __future__ import annotations

import ast
import importlib
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("aot", "cli", "codegen", "runtime")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
LONGEST_FILE = 600

RUNTIME_FOR_AOT = {
    "archive", "artifacts", "call", "checked", "device.cpu", "errors", "files", "progress",
}  # fmt: skip
"""What the export may know of the runtime: formats and facts, none of what loads and calls."""

RUNS_ARTIFACTS = (
    "aot/compile.py", "aot/custom_ops/eager.py", "aot/export.py", "aot/verify", "aot/dynamo",
    "aot/bench",
)  # fmt: skip
"""The places of the export that also load and call what they compiled."""


@dataclass(frozen=True)
class Rule:
    """A module that only some places may import.

    Attributes:
        module: The module, with all within it.
        places: The beginnings of the paths that may import it.
        lazily: Whether only functions may, so that it is imported on first use.
    """

    module: str
    places: tuple[str, ...]
    lazily: bool = False


RULES = (
    Rule("pelton.aot", ("cli/",)),
    Rule("pelton.cli", ()),
    Rule("pelton.codegen", ("aot/targets/iree",)),
    Rule("pelton.runtime.executable", (*RUNS_ARTIFACTS, "cli/")),
    Rule("torch", ("aot/", "cli/")),
    Rule("iree.compiler", ("aot/", "cli/", "codegen/")),
    Rule("iree.runtime", ("runtime/", "cli/")),
    Rule("tensorrt", ("aot/targets/tensorrt", "runtime/engines/", "cli/"), lazily=True),
    Rule("tensorrt_rtx", ("aot/targets/tensorrt", "runtime/engines/", "cli/"), lazily=True),
    Rule("onnx", ("aot/raising/", "aot/targets/"), lazily=True),
    Rule("onnxscript", ("aot/compat/", "aot/raising/"), lazily=True),
    Rule("onnxruntime", ("aot/targets/", "aot/bench/", "runtime/engines/onnxruntime"), lazily=True),
    Rule("matplotlib", ("aot/bench/",), lazily=True),
    Rule("transformers", (), lazily=True),
    Rule("iree.build", ("aot/build_actions", "aot/build_origin", "aot/compat/build_actions")),
    Rule("ray", ("cli/jobs/ray_executor",), lazily=True),
    Rule(
        "torch._export.serde", ("aot/compat/exported_programs.py",), lazily=True
    ),  # loads TorchDynamo
    Rule("pickle", ("aot/build_origin",)),  # between processes of one build, never a file
    Rule("aot", ()),
    Rule("cli", ()),
    Rule("codegen", ()),
    Rule("runtime", ()),
)

WITHOUT_TORCH = ("aot/targets/iree",)
"""Places within the reach of a rule for torch that it is forbidden to all the same."""

NEEDED_BY_RUNTIME = {"iree", "ml_dtypes", "numpy"}
"""What the runtime may import when it is imported, beside the standard library."""


@dataclass(frozen=True)
class Import:
    """One imported module: where, and whether within a function."""

    place: str
    line: int
    module: str
    lazy: bool

    def __str__(self) -> str:
        return f"{self.place}:{self.line} imports {self.module}"


def imports_of(path: Path) -> Iterator[Import]:
    """Yield the absolute imports of a file, those within functions too."""
    place = path.relative_to(ROOT).as_posix()

    def walk(node: ast.AST, lazy: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(place, child.lineno, alias.name, lazy)
            elif isinstance(child, ast.ImportFrom) and child.level == 0:
                for alias in child.names:  # which may be a module or a name in one
                    yield Import(place, child.lineno, f"{child.module}.{alias.name}", lazy)
            inner = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            yield from walk(child, lazy or inner)

    yield from walk(ast.parse(path.read_text()), False)


IMPORTS = [found for path in FILES for found in imports_of(path)]


def is_within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.module)
def test_module_is_imported_only_where_it_may_be(rule: Rule) -> None:
    own = rule.module.removeprefix("pelton.").partition(".")[0]
    wrong = [
        str(found)
        for found in IMPORTS
        if is_within(found.module, rule.module)
        and not found.place.startswith((*rule.places, *(f"{p}/" for p in PACKAGES if p == own)))
    ]
    assert wrong == []


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.lazily], ids=lambda r: r.module)
def test_optional_package_is_imported_on_first_use(rule: Rule) -> None:
    eager = [
        str(found) for found in IMPORTS if is_within(found.module, rule.module) and not found.lazy
    ]
    assert eager == []


def test_export_knows_only_formats_and_facts_of_the_runtime() -> None:
    wrong = []
    for found in IMPORTS:
        if found.place.startswith("aot/") and is_within(found.module, "pelton.runtime"):
            submodule = found.module.removeprefix("pelton.runtime.")
            known = any(is_within(submodule, name) for name in RUNTIME_FOR_AOT)
            if not known and not found.place.startswith(RUNS_ARTIFACTS):
                wrong.append(str(found))
    assert wrong == []


def test_target_iree_works_without_torch() -> None:
    wrong = [
        str(found)
        for found in IMPORTS
        if found.place.startswith(WITHOUT_TORCH) and is_within(found.module, "torch")
    ]
    assert wrong == []


def test_runtime_needs_numpy_and_an_engine_and_nothing_else() -> None:
    needed = {
        found.module.partition(".")[0]
        for found in IMPORTS
        if found.place.startswith("runtime/") and not found.lazy
    }
    assert needed - NEEDED_BY_RUNTIME - set(sys.stdlib_module_names) == set()


def test_compiler_process_loads_nothing_but_the_compiler() -> None:
    needed = {
        found.module.partition(".")[0] for found in IMPORTS if found.place.startswith("codegen/")
    }
    assert needed - set(sys.stdlib_module_names) == {"iree"}


@pytest.mark.parametrize("package", PACKAGES)
def test_package_imports_itself_relatively(package: str) -> None:
    wrong = [
        str(found)
        for found in IMPORTS
        if found.place.startswith(f"{package}/") and is_within(found.module, f"pelton.{package}")
    ]
    assert wrong == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_file_is_not_too_long(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LONGEST_FILE


# Facades


def sort_key(name: str) -> tuple[int, str]:
    """Sort as the linter does: constants, classes, then functions."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)


FACADES = [path for path in FILES if path.name == "__init__.py" and "__all__" in path.read_text()]


@pytest.mark.parametrize("path", FACADES, ids=name_of)
def test_facade_lists_what_it_imports_in_order(path: Path) -> None:
    module = importlib.import_module(".".join(("pelton", *path.parent.relative_to(ROOT).parts)))
    listed = module.__all__
    imported = {
        alias.asname or alias.name
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert list(listed) == sorted(set(listed), key=sort_key)
    assert {name for name in imported if not name.startswith("_")} == set(listed)
    assert [name for name in listed if not hasattr(module, name)] == []


@pytest.mark.parametrize("package", PACKAGES)
def test_facade_holds_names_and_nothing_else(package: str) -> None:
    for node in ast.parse((ROOT / package / "__init__.py").read_text()).body:
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        assert is_docstring or isinstance(node, (ast.Assign, ast.ImportFrom)), ast.unparse(node)
        assert not isinstance(node, ast.ImportFrom) or node.names[0].name != "*"


# What importing does


def run_child(code: str) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr


def test_no_package_is_loaded_under_a_second_name() -> None:
    run_child(
        """
        import sys
        import pelton.aot, pelton.cli, pelton.codegen, pelton.runtime
        assert not {"aot", "cli", "codegen", "runtime"} & set(sys.modules)
        """
    )


def test_runtime_is_imported_without_torch_and_without_a_compiler() -> None:
    run_child(
        """
        import importlib, pkgutil, sys

        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name in ("torch", "rich", "safetensors", "iree.compiler"):
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Absent())
        import pelton.runtime
        for module in pkgutil.iter_modules(pelton.runtime.__path__, "pelton.runtime."):
            importlib.import_module(module.name)
        assert not {"torch", "rich", "iree.compiler"} & set(sys.modules)
        """
    )
