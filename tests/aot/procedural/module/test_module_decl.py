"""Declarations of a class: what its members become, and which of them are refused with a line."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot
from pelton.aot.ir.builder import ModuleBuilderOptions
from pelton.aot.procedural.globals.types import AbstractSize
from pelton.aot.procedural.module.module_decl import (
    AnnotatedProcedure,
    ModuleDecl,
    ProcedureDecl,
    module_name_of,
    read_class,
)
from pelton.aot.spec.inputs import NamedDimension

PROGRAM = torch.export.export(nn.ReLU(), (torch.zeros(2),))


def read(**members: Any) -> ModuleDecl:
    made = aot.CompiledModule.create_from_dict("Case", members)
    return aot.CompiledModule.get_class_info(made)


def read_method(function: Any) -> ProcedureDecl:
    return read(f=function).procedures["f"]


class Mixin:
    def mixed(self) -> None: ...


class Base(aot.CompiledModule):
    state = aot.export_global(1, mutable=True)
    program = PROGRAM
    constant = 3

    def base(self) -> None: ...
    def overridden(self, x=aot.AbstractI64) -> None: ...
    def hidden(self) -> None: ...


class Derived(Base, Mixin):
    hidden = None
    _private = PROGRAM

    def overridden(self, y=aot.AbstractF32) -> None: ...
    def _helper(self, anything) -> None: ...

    @staticmethod
    def static(anything) -> None: ...

    @property
    def prop(self) -> int:
        return 1


def test_members_are_sorted_by_what_they_declare() -> None:
    decl = aot.CompiledModule.get_class_info(Derived)
    assert list(decl.procedures) == ["overridden", "base", "mixed"]
    assert list(decl.globals) == ["state"]
    assert list(decl.programs) == ["_private", "program"]
    assert decl.cls is Derived


def test_the_most_derived_member_counts() -> None:
    decl = aot.CompiledModule.get_class_info(Derived)
    assert list(decl.procedures["overridden"].defaults) == ["y"]
    assert "hidden" not in decl.procedures
    assert "hidden" in aot.CompiledModule.get_class_info(Base).procedures


def test_the_names_of_self_include_helpers_and_constants_once() -> None:
    names = aot.CompiledModule.get_class_info(Derived).names()
    assert {"state", "base", "program", "constant", "_helper", "static", "prop"} <= set(names)
    assert len(names) == len(set(names))
    assert not {"module_op", "get_info", "__module__"} & set(names)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Module", "module"),
        ("ModuleModule", "module"),
        ("A", "a"),
        ("lower", "lower"),
        ("HTTPServer", "h_t_t_p_server"),
        ("My_Net", "my__net"),
    ],
)
def test_the_module_is_named_after_the_class(name: str, expected: str) -> None:
    assert module_name_of(name) == expected


def test_a_given_name_and_options_are_kept() -> None:
    options = ModuleBuilderOptions(import_symbolic_shape_expressions=False)
    decl = read_class(Derived, "given", options)
    assert (decl.export_name, decl.options) == ("given", options)


@pytest.mark.parametrize(
    "value",
    [lambda self: None, aot.export_global(1), PROGRAM, 3],
    ids=["procedure", "global", "program", "constant"],
)
@pytest.mark.parametrize("name", ["exported", "module_op"])
def test_a_member_that_would_hide_the_module_is_refused(name: str, value: Any) -> None:
    message = rf"Case\.{name} cannot be declared: modules have an attribute of that name"
    with pytest.raises(aot.ExportError, match=message) as caught:
        read(**{name: value})
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


# Parameters


def test_the_signature_is_without_self_and_keeps_kinds() -> None:
    def f(self, a=aot.AbstractI64, /, b=2, *, c="text") -> None: ...

    decl = read_method(f)
    kinds = [p.kind.name for p in decl.signature.parameters.values()]
    assert kinds == ["POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD", "KEYWORD_ONLY"]
    assert decl.defaults == {"a": aot.AbstractI64, "b": 2, "c": "text"}
    assert decl.function is f
    assert decl.location.file == __file__
    assert decl.location.line == inspect.getsourcelines(f)[1]
    assert decl.arg_device is None


def test_a_specification_may_be_the_annotation() -> None:
    def f(self, x, y=aot.AbstractF32) -> None: ...

    f.__annotations__ = {"x": aot.AbstractTensor(2), "y": aot.AbstractI64}
    assert read_method(f).defaults == {"x": aot.AbstractTensor(2), "y": aot.AbstractF32}


def test_input_specs_in_a_tree_become_types_named_by_their_path() -> None:
    bounds = (1, 2, 4)
    tree = {
        "a": [aot.InputInfo((bounds, 3), torch.int32)],
        "b": (aot.DimensionInputInfo(bounds), None, 2.5, torch.float16),
    }
    default = read_method(lambda self, x=tree: None).defaults["x"]
    assert default["a"] == [
        aot.AbstractTensor(NamedDimension("x['a'][0]_dim0", *bounds), 3, dtype=torch.int32)
    ]
    size, *constants = default["b"]
    assert isinstance(size, AbstractSize)
    assert constants == [None, 2.5, torch.float16]
    assert isinstance(tree["a"][0], aot.InputInfo)


class NoTree:
    pass


@pytest.mark.parametrize(
    ("default", "message"),
    [
        (aot.AbstractTensor, r"of x is the class AbstractTensor; write AbstractTensor\(\.\.\.\)"),
        ({"k": [torch.zeros(2)]}, r"of x\['k'\]\[0\] is a tensor; give its abstract type"),
        ([1, b"2"], r"of x\[1\] is a bytes; give an abstract type, a number, text or None"),
        (NoTree(), r"of x is a NoTree; give an abstract type"),
        (1j, r"of x is a complex"),
    ],
    ids=["class", "tensor", "bytes", "object", "complex"],
)
def test_a_default_of_another_kind_is_refused_with_its_path(default: Any, message: str) -> None:
    with pytest.raises(aot.ExportError, match=rf"Case\.f\(\): the default {message}") as caught:
        read_method(lambda self, x=default: None)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def no_self() -> None: ...
def rest(self, *rest) -> None: ...
def options(self, **options) -> None: ...
def no_default(self, x) -> None: ...


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (no_self, r"Case\.f\(\) takes no self; add it, or make it a @staticmethod"),
        (rest, r"Case\.f\(\): \*rest cannot be exported; an entry point has a fixed number"),
        (options, r"Case\.f\(\): \*options cannot be exported"),
        (no_default, r"argument 'x' has no default; give its abstract type, as in x=Abstract"),
    ],
    ids=lambda value: getattr(value, "__name__", "message"),
)
def test_a_method_that_cannot_be_an_entry_point_is_refused_at_its_line(
    function: Any, message: str
) -> None:
    with pytest.raises(aot.ExportError, match=message) as caught:
        read_method(function)
    assert caught.value.location is not None
    assert caught.value.location.line == function.__code__.co_firstlineno
    read(_f=function)  # a helper is no entry point


def test_options_of_a_signature_belong_to_the_method_which_stays_callable() -> None:
    device = aot.DeviceAffinity(1)

    class Placed(aot.CompiledModule):
        @aot.CompiledModule.signature_info(arg_device={0: device})
        def f(self, x=aot.AbstractTensor(2)) -> Any:
            return "called"

    decl = aot.CompiledModule.get_class_info(Placed).procedures["f"]
    assert decl.arg_device == {0: device}
    assert isinstance(vars(Placed)["f"], AnnotatedProcedure)
    assert Placed.f(None) == "called"
