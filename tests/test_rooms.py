"""The rooms of each package stand in the order of the flow, and an import goes to an earlier one.

Lazy imports and those for types only count as any other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("aot", "cli", "codegen", "runtime")

Room: TypeAlias = tuple[str, ...]
"""Files or folders of one room: a folder, or the files that belong together."""

Floors: TypeAlias = tuple[tuple[Room, ...], ...]
"""Rooms from the bottom to the top; those of one floor do not import each other."""

FLOORS: Mapping[str, Floors] = {
    "aot": (
        (("compat",), ("_requirements",)),
        (("spec",),),
        (("ir",),),
        (("capture",),),
        (("decompositions",),),
        (("lowering",),),
        (("procedural",), ("raising",)),
        (("targets",),),
        (("custom_ops",), ("verify",)),
        (("output", "export", "compile"), ("passes",)),
        (("dynamo",), ("bench",), ("build_origin", "build_actions"), ("support",)),
        (("__init__",),),
    ),
    "aot/capture": (
        (("dynamic_shapes",), ("side_effects",), ("stack_traces",), ("program",), ("slice_sizes",)),
        (("arguments",),),
        (("eager_program",), ("diagnosis",), ("dynamic_squeeze",)),
        (("guards",),),
        (("broadcast_sizes",), ("operand_sizes",)),
        (("trace",),),
        (("signature",), ("prune_constants",), ("example_inputs",)),
        (("parameters",),),
        (("programs",),),
    ),
    "aot/procedural": (
        (("values",), ("fx_passes",)),
        (("globals",),),
        (("calls",),),
        (("module",),),
    ),
    "aot/targets": (
        (("base",), ("cache",)),
        (("iree",),),
        (("tensorrt",),),
        (("table",),),
        (("request",),),
        (("__init__",),),
    ),
    "codegen": (
        (("compat",), ("errors",), ("linalg",), ("emission",)),
        (("scalars",),),
        (("faults",),),
        (("passes",),),
        (("session",),),
        (("process",),),
        (("__init__",),),
    ),
    "runtime": (
        (("compat",), ("errors", "files", "progress", "checked", "codec")),
        (("call",),),
        (("archive",),),
        (("device",),),
        (("artifacts",),),
        (("engines",),),
        (("executable",), ("parameter",), ("trtm",)),
        (("__init__",),),
    ),
}

MOST_FLOORS = 12


def files_by_module() -> dict[str, Path]:
    """Return every source file by the name that it is imported by."""
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(("pelton", *parts)).removesuffix(".__init__")] = path
    return found


FILES = files_by_module()


def imports_of(module: str) -> Iterator[tuple[str, int]]:
    """Yield the files of ours that a file imports, wherever in it, with the lines."""
    path = FILES[module]
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            source = ".".join([*base, *(node.module or "").split(".")]).rstrip(".")
            for alias in node.names:
                submodule = f"{source}.{alias.name}"
                yield (submodule if submodule in FILES else source), node.lineno
        elif isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)


ARROWS = {
    module: {name: line for name, line in imports_of(module) if name in FILES and name != module}
    for module in FILES
}


def room_of(module: str, package: str) -> str | None:
    """Return the file or folder of a package that a module is in; None: it is not in it."""
    prefix = "pelton." + package.replace("/", ".")
    if module == prefix:
        return "__init__"
    return module[len(prefix) + 1 :].split(".")[0] if module.startswith(prefix + ".") else None


def circle_through(module: str, arrows: Mapping[str, Mapping[str, int]]) -> list[str] | None:
    """Return a shortest circle of imports through a file; None: there is none."""
    paths = [[module]]
    seen: set[str] = set()
    while paths:
        path = paths.pop(0)
        for target in arrows[path[-1]]:
            if target == module:
                return path
            if target not in seen:
                seen.add(target)
                paths.append([*path, target])
    return None


@pytest.mark.parametrize("package", FLOORS)
def test_import_goes_to_an_earlier_room(package: str) -> None:
    floor = {name: i for i, rooms in enumerate(FLOORS[package]) for room in rooms for name in room}
    home = {name: room for rooms in FLOORS[package] for room in rooms for name in room}
    wrong = []
    for module, arrows in ARROWS.items():
        here = room_of(module, package)
        for target, line in arrows.items():
            there = room_of(target, package)
            if here is None or there is None or home[here] == home[there]:
                continue
            if floor[there] >= floor[here]:
                wrong.append(f"{FILES[module].relative_to(ROOT)}:{line} imports {target}")
    assert wrong == []


@pytest.mark.parametrize("package", FLOORS)
def test_every_file_and_folder_is_in_a_room(package: str) -> None:
    listed = {name for rooms in FLOORS[package] for room in rooms for name in room}
    found = {room_of(module, package) for module in FILES} - {None, "__init__"}
    assert found - listed == set()
    assert len(FLOORS[package]) <= MOST_FLOORS


def test_no_files_import_each_other_in_a_circle() -> None:
    circles = [circle for module in FILES if (circle := circle_through(module, ARROWS))]
    assert sorted(circles, key=len)[:1] == []


def test_a_circle_is_found() -> None:
    arrows = {"a": {"b": 1}, "b": {"c": 2}, "c": {"b": 3}}
    assert circle_through("a", arrows) is None
    assert circle_through("b", arrows) == ["b", "c"]
