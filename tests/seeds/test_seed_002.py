"""Every public name, method and parameter of the seed `002` (the ahead-of-time toolkit's API)."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from iree.compiler import ir

from pelton import aot
from pelton.aot.support import procedural

DIFFERENT = {
    ("jittable", "dynamic_shapes"): "None stands for {}: no default can be changed by a call",
    ("jittable.resolve_call", "dynamic_shapes"): "None stands for {}, as above",
    ("CompiledModule.jittable", "dynamic_shapes"): "None stands for {}, as above",
    ("CompiledModule.jittable.resolve_call", "dynamic_shapes"): "None stands for {}, as above",
    ("ExportOutput.compile", "save_to"): "may be left out: the seed's None",
    ("ExportOutput.compile", "target_backends"): "the seed states no default",
    ("support.procedural.ProcedureTrace", "proxy_posargs"): "may be left out: none",
    ("support.procedural.ProcedureTrace", "proxy_kwargs"): "may be left out: none",
}
"""Where a parameter deliberately is not as in the seed, and why."""

ABSTRACT = {
    "support.procedural.AbstractIntrinsic.create_intrinsic",
    "support.procedural.AbstractIntrinsic.get_ir_type",
    "support.procedural.AbstractTypedef.get_ir_type",
    "support.procedural.Abstractifiable.abstractify",
    "support.procedural.GlobalsDef.items",
    "support.procedural.GlobalsDef.schema",
    "support.procedural.Intrinsic.resolve_call",
    "support.procedural.Intrinsic.resolve_ir_values",
    "support.procedural.IrScalar.set",
    "support.procedural.TreeAbstractifiable.abstractify_tree",
}
"""Methods of base classes that say nothing themselves, in the seed as here."""


KINDS = {
    "support.procedural.Location": (ir.FileLineColLoc, ir.CallSiteLoc, ir.FusedLoc, ir.NameLoc),
}
"""Classes of the compiler whose members have moved to their kinds since the seed was written."""

GONE = {
    f"support.procedural.Location.is_a_{kind}": "isinstance tells"
    for kind in ("callsite", "file", "fused", "name")
} | {"support.procedural.ShapedType.static_typeid": "that of a type such as RankedTensorType"}
"""What the compiler's own classes no longer have, and what to use."""


@dataclass(frozen=True)
class Entry:
    """A line of the seed: a name, and its parameters if it is called."""

    name: str
    parameters: tuple[inspect.Parameter, ...] | None

    def __str__(self) -> str:
        return self.name


def entries() -> Iterator[Entry]:
    for line in Path(__file__).with_name("seed_002.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, bracket, _ = line.partition("(")
            yield Entry(name, tuple(parameters_of(line)) if bracket else None)


def parameters_of(line: str) -> Iterator[inspect.Parameter]:
    """Read the parameters of a line such as `AbstractTensor(*size, dtype=torch.float32)`."""
    namespace: dict[str, Any] = {"torch": torch}
    exec(f"def stated({line.partition('(')[2]}: ...", namespace)
    yield from inspect.signature(namespace["stated"]).parameters.values()


ENTRIES = list(entries())


def find(name: str) -> Any:
    """Return the object of a name below `pelton.aot`, from its class where it is a member."""
    found: Any = aot
    for part in name.split("."):
        if inspect.ismodule(found) and not hasattr(found, part):
            found = importlib.import_module(f"{found.__name__}.{part}")
        else:
            found = getattr(found, part)
    return found


def find_owner(name: str) -> Any:
    owner, _, _ = name.rpartition(".")
    return find(owner) if owner else aot


# Objects that have the attributes which only instances have


@pytest.fixture(scope="module")
def instances() -> dict[str, Any]:
    """An object of each class whose attributes are set when it is made."""
    archive = aot.ParameterArchiveBuilder()
    archive.add_tensor("a", torch.ones(2))
    made: dict[str, Any] = {
        "AbstractTensor": aot.AbstractTensor(2),
        "DeviceTensorTrait": aot.DeviceTensorTrait(0),
        "ExportOutput": aot.export(torch.nn.ReLU(), args=(torch.ones(2),)),
        "ExternalTensorTrait": aot.ExternalTensorTrait("model", "a"),
        "ParameterArchiveEntry": aot.ParameterArchiveEntry(archive.index.items()[0][1]),
        "jittable": aot.jittable(torch.relu),
        "support.procedural.AbstractScalar": aot.AbstractI32,
        "support.procedural.AbstractTensor": aot.AbstractTensor(2),
        "support.procedural.TreeSpec": procedural.tree_flatten([1])[1],
    }

    class Procedural(aot.CompiledModule):
        number = aot.export_global(aot.AbstractI64, mutable=True)
        tensor = aot.export_global(torch.ones(2), mutable=True)

        def entry(self, x=aot.AbstractTensor(2)):
            trace = procedural.current_ir_trace()
            made["support.procedural.FunctionBuilder"] = trace
            made["support.procedural.ProcedureTrace"] = trace
            made["support.procedural.ModuleBuilder"] = trace.module_builder
            made["support.procedural.IrGlobalScalar"] = self.number
            made["support.procedural.IrScalar"] = self.number
            made["support.procedural.IrGlobalTensor"] = self.tensor
            made["support.procedural.MaterializedGlobal"] = self.tensor
            made["support.procedural.IrTensor"] = x
            return x

    made["module"] = Procedural()
    return made


def has(name: str, instances: dict[str, Any]) -> bool:
    owner_name, _, attribute = name.rpartition(".")
    owner = find_owner(name)
    if inspect.isclass(owner) and owner_name in instances:
        instance = instances[owner_name]
        assert isinstance(instance, owner)
        return attribute in dir(instance) or hasattr(instance, attribute)
    if inspect.ismodule(owner):
        return bool(find(name)) or True
    return any(hasattr(kind, attribute) for kind in (owner, *KINDS.get(owner_name, ())))


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.name not in GONE], ids=str)
def test_a_name_of_the_seed_is_there(entry: Entry, instances: dict[str, Any]) -> None:
    assert has(entry.name, instances)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.parameters is not None], ids=str)
def test_parameters_are_those_of_the_seed(entry: Entry) -> None:
    assert list(wrong_parameters(entry, find(entry.name))) == []


def wrong_parameters(entry: Entry, found: Callable[..., Any]) -> Iterator[str]:
    """Yield how the parameters of a function are not those that the seed states."""
    actual = dict(inspect.signature(found).parameters)
    is_method = inspect.isclass(find_owner(entry.name)) and inspect.isfunction(found)
    if is_method and next(iter(actual), "") == "self":
        del actual["self"]
    positional = [p.name for p in actual.values() if p.kind <= p.POSITIONAL_OR_KEYWORD]
    stated = entry.parameters or ()
    for index, parameter in enumerate(stated):
        if (entry.name, parameter.name) in DIFFERENT:
            continue
        ours = actual.get(parameter.name)
        if ours is None:
            yield f"{parameter} is missing"
        elif not may_stand_for(ours, parameter):
            yield f"{parameter} is {ours.kind.description}"
        elif ours.default != parameter.default:
            yield f"{parameter} has the default {ours.default!r}"
        elif parameter.kind is parameter.POSITIONAL_OR_KEYWORD and positional[index] != ours.name:
            yield f"{parameter} is at another place"
    for ours in actual.values():
        is_variadic = ours.kind in (ours.VAR_POSITIONAL, ours.VAR_KEYWORD)
        is_stated = ours.name in {p.name for p in stated} or entry.name in {n for n, _ in DIFFERENT}
        if not is_stated and not is_variadic and ours.default is inspect.Parameter.empty:
            yield f"{ours} is needed, of which the seed knows nothing"


def may_stand_for(ours: inspect.Parameter, stated: inspect.Parameter) -> bool:
    """Tell whether each call that fits a parameter of the seed fits ours."""
    if ours.kind == stated.kind:
        return True
    positional = (ours.POSITIONAL_ONLY, ours.POSITIONAL_OR_KEYWORD)
    if stated.name == "mdl":  # `mdl, /` in the seed's text of overloads
        return ours.kind in positional
    return ours.kind is ours.POSITIONAL_OR_KEYWORD and stated.kind is stated.KEYWORD_ONLY


@pytest.mark.parametrize(
    "entry",
    [e for e in ENTRIES if e.parameters is not None and e.name not in ABSTRACT],
    ids=str,
)
def test_nothing_of_the_seed_is_left_to_be_implemented(entry: Entry) -> None:
    found = inspect.unwrap(find(entry.name))
    if inspect.isclass(found) or not inspect.isfunction(found):
        return
    tree = ast.parse(textwrap.dedent(inspect.getsource(found)))
    raised = [
        ast.unparse(node.exc) for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc
    ]
    assert [text for text in raised if text.startswith("NotImplementedError")] == []


def test_differences_are_of_parameters_that_the_seed_has() -> None:
    stated = {(e.name, p.name) for e in ENTRIES for p in e.parameters or ()}
    assert DIFFERENT.keys() <= stated


@pytest.mark.parametrize("name", GONE)
def test_what_the_compiler_has_dropped_is_still_missing_there(name: str) -> None:
    assert not hasattr(find_owner(name), name.rpartition(".")[2])


def test_types_of_mlir_are_the_compilers_own() -> None:
    names = ("DictAttr F32Type F64Type IndexType IntegerType Location Operation RankedTensorType "
             "ShapedType StringAttr Value").split()  # fmt: skip
    assert all(getattr(procedural, name) is getattr(ir, name) for name in names)
    assert procedural.IrType is ir.Type
