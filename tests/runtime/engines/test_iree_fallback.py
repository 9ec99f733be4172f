"""Fallback functions: an IREE module with the state of a package."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pelton.runtime.archive.parameter import parameter_of
from pelton.runtime.artifacts.entry_points import EntryPoint
from pelton.runtime.device.host_arrays import host_array
from pelton.runtime.engines.iree import load_vmfb
from pelton.runtime.engines.iree_fallback import FallbackFunction
from pelton.runtime.errors import ArtifactError
from tests.runtime.manifests import port

Compiled = Callable[[str], Path]
ONES = np.ones(4, np.float32)
TOTAL = port("state.total", (4,), "state", origin="total")
CALLS = port("state.calls", (), "state", "int64", origin="calls")
ODD = port("state.odd", (2,), "state", "bool", origin="odd")


class Package:
    """A package with one member and its state, in memory."""

    def __init__(self, data: bytes) -> None:
        self.path = Path("m.trtm")
        self.package = SimpleNamespace(read=lambda member: memoryview(data))
        self.lock = threading.RLock()
        self.state: dict[str, Any] = {
            "total": np.full(4, 5, np.float32),
            "calls": np.array(7),
            "odd": np.zeros(2, bool),
        }

    def read_state(self, name: str) -> Any:
        return self.state[name]

    def write_state(self, name: str, value: Any) -> None:
        self.state[name] = host_array(value, name).copy()


def fallback(
    path: Path, package: Package, weights: dict[str, Any] | None = None, **changes: Any
) -> FallbackFunction:
    """Return the function `main` of a module, as the manifest would describe it."""
    given = {name.partition("::")[2]: value for name, value in (weights or {}).items()}
    signature = load_vmfb(path, "local-sync", given or None, True).signatures()["main"]
    fields = {"inputs": (), "outputs": (), "members": {"fallback": "fallback/main.vmfb"}, **changes}
    function = EntryPoint(fields.pop("signature", signature), **fields)
    origins = {name: parameter_of(name, value) for name, value in (weights or {}).items()}
    return FallbackFunction(package, function, "fallback", "local-sync", origins)  # type: ignore[arg-type]


def test_function_without_state(compiled: Compiled) -> None:
    path = compiled("add_one")
    run = fallback(path, Package(path.read_bytes()))
    assert run([ONES])[0].tolist() == [2, 2, 2, 2]


def test_state_of_the_package_is_read_and_written(compiled: Compiled) -> None:
    path = compiled("counter")
    package = Package(path.read_bytes())
    every = (TOTAL, CALLS, ODD)
    run = fallback(path, package, inputs=every, outputs=every)
    assert run([ONES])[0].tolist() == [6, 6, 6, 6]
    assert package.state["total"].tolist() == [6, 6, 6, 6]
    assert int(package.state["calls"]) == 8 and package.state["odd"].tolist() == [True, True]
    package.state["total"] = np.zeros(4, np.float32)
    run([ONES])
    assert package.state["total"].tolist() == [1, 1, 1, 1]


def test_weights_of_the_package_are_those_of_the_module(compiled: Compiled) -> None:
    path = compiled("weighted")
    package = Package(path.read_bytes())
    run = fallback(path, package, {"model::weight": np.float32([1, 2, 3, 4])})
    assert run([ONES])[0].tolist() == [2, 3, 4, 5]


def test_module_of_another_function_is_refused(compiled: Compiled) -> None:
    path = compiled("add_one")
    other = load_vmfb(compiled("plus_number"), "local-sync", None, True).signatures()["main"]
    with pytest.raises(ArtifactError, match=r"fallback/main.vmfb of m.trtm is main\(x: .*expected"):
        fallback(path, Package(path.read_bytes()), signature=other)


def test_module_without_the_function_is_refused(compiled: Compiled) -> None:
    path = compiled("two_entry_points")
    double = load_vmfb(path, "local-sync", None, True).signatures()["double"]
    with pytest.raises(ArtifactError, match=r"of m.trtm has no function 'main'"):
        renamed = type(double)("main", double.parameters, double.inputs, 0, double.results)
        function = EntryPoint(renamed, (), (), members={"fallback": "fallback/main.vmfb"})
        FallbackFunction(
            Package(path.read_bytes()),
            function,
            "fallback",
            "local-sync",
            {},  # type: ignore[arg-type]
        )


def test_module_without_accessors_of_the_state_is_refused(compiled: Compiled) -> None:
    path = compiled("add_one")
    with pytest.raises(ArtifactError, match="has no accessors of its state total"):
        fallback(path, Package(path.read_bytes()), inputs=(TOTAL,))


def test_damaged_module_is_named_by_its_member() -> None:
    function = EntryPoint(SimpleNamespace(name="main"), (), (), members={"fallback": "f/main.vmfb"})  # type: ignore[arg-type]
    with pytest.raises(ArtifactError, match=r"^f/main.vmfb of m.trtm is bare bytecode"):
        FallbackFunction(Package(b"no module"), function, "fallback", "cpu", {})  # type: ignore[arg-type]
