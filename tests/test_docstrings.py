"""Every example in a docstring runs and shows what it says; every public name has a docstring."""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pelton import aot, runtime
from pelton.runtime.errors import MissingDependencyError

ROOT = Path(__file__).parent.parent
PACKAGES = ("aot", "cli", "codegen", "runtime")


def module_names() -> Iterator[str]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if path.name != "__main__.py":
                parts = path.relative_to(ROOT).with_suffix("").parts
                yield ".".join(("pelton", *parts)).removesuffix(".__init__")


@pytest.fixture(scope="session")
def sample_vmfb(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Compile `x + 1` for two numbers; returns the path."""
    path = tmp_path_factory.mktemp("sample") / "sample.vmfb"
    aot.export(lambda x: x + 1, args=(torch.zeros(2),)).compile(path)
    return str(path)


@pytest.mark.filterwarnings("ignore:.*LeafSpec.* is deprecated:FutureWarning")  # within torch
@pytest.mark.parametrize("name", list(module_names()))
def test_examples_show_what_they_say(
    name: str, sample_vmfb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        module = importlib.import_module(name)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    names = {
        "__name__": "__main__",  # classes of an example are the user's, not the module's
        "torch": torch,
        "nn": torch.nn,
        "np": np,
        "aot": aot,
        "runtime": runtime,
        "SAMPLE_VMFB": sample_vmfb,
    }
    said: list[str] = []
    failed = 0
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder().find(module, extraglobs=names):
        try:
            failed += runner.run(test, out=said.append).failed
        except MissingDependencyError as error:
            pytest.skip(str(error))
    assert failed == 0, "".join(said)


def public_objects() -> Iterator[Any]:
    for facade in (aot, runtime):
        for name in facade.__all__:
            yield pytest.param(getattr(facade, name), id=f"{facade.__name__}.{name}")


def undocumented(value: Any) -> Iterator[str]:
    """Yield the names of a public object and its public members that have no docstring."""
    if not (inspect.isclass(value) or callable(value)):
        return
    own = value.__doc__ if inspect.isclass(value) else inspect.getdoc(value)
    if not own:
        yield value.__name__
    for name, member in vars(value).items() if inspect.isclass(value) else ():
        documented = isinstance(member, (property, staticmethod, classmethod))
        if name.startswith("_") or not (documented or inspect.isfunction(member)):
            continue
        if not inspect.getdoc(getattr(value, name) if not isinstance(member, property) else member):
            yield f"{value.__name__}.{name}"


@pytest.mark.parametrize("value", list(public_objects()))
def test_public_name_has_a_docstring(value: Any) -> None:
    assert list(undocumented(value)) == []
