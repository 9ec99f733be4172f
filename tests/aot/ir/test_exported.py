"""Exported modules: signatures, parameters by scope, and their description."""

from __future__ import annotations

import torch

from pelton.aot.ir.builder import GlobalAttributes, ModuleBuilder
from pelton.aot.ir.exported import (
    ExportedModule,
    ExternalParameter,
    Signatures,
    by_scope,
    describe,
)
from pelton.aot.ir.module import new_module, set_signature
from pelton.aot.ir.state_accessors import add_state_accessors
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import Signature, TensorSpec

WEIGHT = torch.ones(2, 3)


def exported(states: int = 0, weights: int = 0) -> ExportedModule:
    builder = ModuleBuilder(new_module("m"))
    for index in range(states):
        attrs = GlobalAttributes(mutable=True)
        builder.create_tensor_global(f"__auto.state{index}", torch.ones(4), attrs=attrs)
    for index in range(weights):
        attrs = GlobalAttributes(external=True, external_scope=f"scope{index % 2}")
        builder.create_tensor_global(f"w{index}", WEIGHT + index, attrs=attrs)
    _, function = builder.create_func_op("main", [])
    signature = Signature("main", result_tree=0, results=(TensorSpec(DTYPES["int8"], (2,)),))
    set_signature(function.operation, signature)
    add_state_accessors(builder)
    return builder.exported()


def test_signatures_leave_out_the_accessors_of_state() -> None:
    assert [*exported(states=2).signatures] == ["main"]


def test_signatures_print_one_line_each() -> None:
    both = Signatures(f=Signature("f"), g=Signature("g"))
    assert str(both) == repr(both) == "f() -> ()\ng() -> ()"
    assert str(Signatures()) == ""


def test_parameters_are_those_of_the_export_unless_others_are_given() -> None:
    module = exported(weights=3)
    assert {scope: [*names] for scope, names in module.parameters.items()} == {
        "scope0": ["w0", "w2"], "scope1": ["w1"],
    }  # fmt: skip
    assert torch.equal(module.parameters["scope0"]["w2"], WEIGHT + 2)
    given = {"scope0": {"w0": WEIGHT}}
    changed = module.with_parameters(given)
    assert changed.parameters is given and changed.module_op is module.module_op
    assert module.with_parameters(None) is module
    assert exported().parameters is None


def test_tensors_are_grouped_by_scope() -> None:
    first, second = ExternalParameter("a", "x", WEIGHT), ExternalParameter("b", "x", WEIGHT)
    assert by_scope([first, second]) == {"a": {"x": WEIGHT}, "b": {"x": WEIGHT}}
    assert by_scope([]) == {}


def test_a_description_names_entry_points_state_and_parameters() -> None:
    lines = describe(exported(states=1, weights=2)).splitlines()
    assert lines == [
        "main() -> (int8[2])",
        "state: state0: float32[4]",
        "external parameters: 1 in scope 'scope0', 24 bytes",
        "external parameters: 1 in scope 'scope1', 24 bytes",
    ]


def test_a_description_counts_the_state_that_it_does_not_name() -> None:
    assert "and " not in describe(exported(states=4))
    text = describe(exported(states=6))
    assert "state3: float32[4], and 2 more" in text and "state4" not in text


def test_an_exported_module_is_its_own() -> None:
    module = exported()
    assert module.exported is module
    assert module.parameter_table == {}
