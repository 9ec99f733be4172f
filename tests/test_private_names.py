"""Private names of other packages are used in `compat` only, each under a contract test."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("aot", "cli", "codegen", "runtime")
COMPAT = {
    "aot/compat": "tests/aot/compat",
    "codegen/compat.py": "tests/codegen",
    "runtime/compat.py": "tests/runtime",
}
"""The places of private names, and the folders of their contract tests."""

DOCUMENTED = ("os._exit",)
"""Names that begin with an underscore in spite of being documented."""

GENERATED = ("_abc_impl",)
"""Private names that Python itself gives to classes."""

BY_NAME = ("getattr", "hasattr", "setattr", "delattr")
"""Functions whose second argument is the name of an attribute."""


def is_compat(place: str) -> bool:
    return place in COMPAT or place.rpartition("/")[0] in COMPAT


PATHS = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
PLACES = [path.relative_to(ROOT).as_posix() for path in PATHS]
FILES = {place: (ROOT / place).read_text() for place in PLACES if not is_compat(place)}


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name != "_"


def has_private_part(dotted: str) -> bool:
    return any(is_private(part) for part in dotted.split("."))


def own_names(tree: ast.AST) -> set[str]:
    """Return the private names that a file itself defines."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                found.add(node.attr)
    return {name for name in found if is_private(name)}


OWN = {name for text in FILES.values() for name in own_names(ast.parse(text))}


def foreign_modules(tree: ast.AST) -> set[str]:
    """Return the names that a file knows modules and contents of other packages by."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases = [alias for alias in node.names if not alias.name.startswith("pelton")]
            found |= {alias.asname or alias.name.partition(".")[0] for alias in aliases}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if not (node.module or "").startswith("pelton"):
                found |= {alias.asname or alias.name for alias in node.names}
    return found


def uses(text: str) -> Iterator[tuple[int, str]]:
    """Yield the private names of other packages that a source text uses, with their lines."""
    tree = ast.parse(text)
    own, foreign = own_names(tree), foreign_modules(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if has_private_part(alias.name) or alias.name == "unittest.mock":
                    yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if has_private_part(name) or name.startswith("unittest.mock"):
                    yield node.lineno, name
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            if not _is_own(node, own, foreign):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call):
            yield from ((node.lineno, name) for name in _named_in_call(node) if name not in OWN)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            if isinstance(node.right, ast.Constant) and is_private(str(node.right.value)):
                yield node.lineno, str(node.right.value)


def _is_own(node: ast.Attribute, own: set[str], foreign: set[str]) -> bool:
    spelled = ast.unparse(node)
    if spelled in DOCUMENTED or spelled.startswith(("aten.", "torch.ops.")):  # operators' names
        return True
    if spelled.partition(".")[0] in foreign:
        return False
    if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
        return node.attr in own | OWN
    return node.attr in own


def _named_in_call(call: ast.Call) -> Iterator[str]:
    """Yield the private names in strings that a call looks up: attributes and modules."""
    called = ast.unparse(call.func).rpartition(".")[2]
    texts = [a.value if isinstance(a, ast.Constant) else None for a in call.args]
    if called in BY_NAME and len(texts) > 1 and isinstance(texts[1], str) and is_private(texts[1]):
        yield texts[1]
    if called == "import_module" and texts and isinstance(texts[0], str):
        if has_private_part(texts[0]):
            yield texts[0]


def test_private_names_of_other_packages_are_in_compat_only() -> None:
    found = [f"{place}:{line} {name}" for place, text in FILES.items() for line, name in uses(text)]
    assert found == [], "give them a public name in compat, with a contract test"


@pytest.mark.parametrize(
    "text",
    [
        "import torch._dynamo",
        "from torch._ops import OpOverload",
        "from torch.fx.passes.shape_prop import _extract_tensor_metadata",
        "from unittest import mock",
        "import unittest.mock",
        "import torch\ntorch._C.parse_schema('')",
        "import torch\nx = torch.nn.modules.dropout._DropoutNd",
        "def f(program): return program._update()",
        "def f(x): return x.target._schema",
        "class A(B):\n  def f(self): return self._private_of_a_base()",
        "class A(B):\n  def f(self): return super()._private_of_a_base()",
        "import torch\nclass A:\n  def _update(self): torch.x._update()",
        "def f(x): return getattr(x, '_schema')",
        "import importlib\nimportlib.import_module('onnxscript.rules._no_op')",
        "def f(folder): return folder / '_mlir_libs'",
    ],
)
def test_private_name_is_found(text: str) -> None:
    assert list(uses(text))


@pytest.mark.parametrize(
    "text",
    [
        "import torch\ntorch.ops.aten._softmax.default",
        "import os\nos._exit(0)",
        "class A:\n  def __init__(self): self._x = 1\n  def f(self, other): return other._x",
        "from .compat.operators import schema_of\nschema_of(1).name",
        "def f(x): return x.__dict__",
    ],
)
def test_public_and_own_names_are_allowed(text: str) -> None:
    assert list(uses(text)) == []


def our_classes() -> list[type]:
    """Return the classes of all modules, those that need no optional package."""
    for package in PACKAGES:
        top = importlib.import_module(f"pelton.{package}")
        for module in pkgutil.walk_packages(top.__path__, f"{top.__name__}."):
            if not module.name.endswith(("__main__", "bench_worker")):
                importlib.import_module(module.name)
    return [
        value
        for name, module in sys.modules.copy().items()
        if name.startswith("pelton.")
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == name and "compat" not in name
    ]


def is_foreign(base: type) -> bool:
    package = base.__module__.partition(".")[0]
    return package != "pelton" and package not in sys.stdlib_module_names


def test_no_class_overrides_a_private_name_of_another_package() -> None:
    wrong = [
        f"{cls.__module__}.{cls.__name__}.{name} overrides that of {base.__name__}"
        for cls in our_classes()
        for base in cls.__mro__
        if is_foreign(base)
        for name in vars(cls)
        if is_private(name) and name in vars(base) and name not in GENERATED
    ]
    assert wrong == []


def public_names(path: Path) -> list[str]:
    """Return the names that a file of `compat` has for the rest of its package."""
    body = ast.parse(path.read_text()).body
    for node in body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return [
        node.name
        for node in body
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not is_private(node.name)
    ] + [
        ast.unparse(node.target)
        for node in body
        if isinstance(node, ast.AnnAssign) and not is_private(ast.unparse(node.target))
    ]


CONTRACTS = [
    (path, ROOT / tests / f"test_{path.name}")
    for place, tests in COMPAT.items()
    for path in (sorted((ROOT / place).glob("*.py")) or [ROOT / place])
    if path.name != "__init__.py"
]


@pytest.mark.parametrize(("path", "tests"), CONTRACTS, ids=lambda path: path.stem)
def test_each_name_in_compat_has_a_contract_test(path: Path, tests: Path) -> None:
    tree = ast.parse(tests.read_text())
    tested = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    tested |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert [name for name in public_names(path) if name not in tested] == []
