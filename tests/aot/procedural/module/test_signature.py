"""Signatures of procedures: element types, names and bounds of dimensions, and constants."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.procedural.module.instance import ModuleInstance
from pelton.aot.procedural.module.signature import signature_of
from pelton.aot.spec.inputs import NamedDimension
from pelton.runtime.call.signature import ConstantSpec, ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import Dim
from tests.aot.procedural.traces import new_builder

IREE = aot.IREE
N = NamedDimension("n", 1, 2, 8)


def signature(function: Any, mutates: tuple[str, ...] = ()) -> Signature:
    made = aot.CompiledModule.create_from_dict("Case", {"f": function})
    instance = ModuleInstance(aot.CompiledModule.get_class_info(made), new_builder())
    instance._declare()
    procedure = instance.procedures["f"]
    procedure.ensure_traced()
    return signature_of(procedure, mutates)


def shapes(found: Signature) -> list[Any]:
    return [leaf.shape for leaf in found.inputs if isinstance(leaf, TensorSpec)]


def test_it_states_the_name_the_place_and_what_is_mutated() -> None:
    def f(self) -> None: ...

    found = signature(f, ("a", "b"))
    assert (found.name, found.mutates) == ("f", ("a", "b"))
    assert found.location == f"{__file__}:{f.__code__.co_firstlineno}"
    assert set(found.producer) == {"pelton", "torch", "iree-base-compiler"}
    assert (found.inputs, found.results, found.dims) == ((), (), ())
    assert found.result_tree is None


def test_unnamed_dimensions_are_named_by_the_path_of_the_argument() -> None:
    tree = {"k": [aot.AbstractTensor(2, None), aot.AbstractTensor(None)]}
    found = signature(lambda self, x=tree, y=aot.AbstractTensor(): None)
    assert shapes(found) == [(2, "x['k'][0]_dim1"), ("x['k'][1]_dim0",), ()]
    assert found.dims == (Dim("x['k'][0]_dim1"), Dim("x['k'][1]_dim0"))


def test_a_dimension_of_one_name_is_one_dimension_with_its_bounds() -> None:
    types = {"x": aot.AbstractTensor(N, "m"), "y": aot.AbstractTensor("m", N)}
    found = signature(lambda self, x=types["x"], y=types["y"]: None)
    assert shapes(found) == [("n", "m"), ("m", "n")]
    assert found.dims == (Dim("n", 1, 8, 2), Dim("m"))


@pytest.mark.parametrize("other", ["n", NamedDimension("n", 1, 2, 4)], ids=["unbounded", "bounded"])
def test_two_ranges_of_one_name_are_refused(other: Any) -> None:
    types = {"x": aot.AbstractTensor(N), "y": aot.AbstractTensor(other)}
    with pytest.raises(aot.ExportError, match=r"f\(\): dimension 'n' has bounds .* one range"):
        signature(lambda self, x=types["x"], y=types["y"]: None)


@pytest.mark.parametrize(
    ("type_", "leaf"),
    [
        (aot.AbstractBool, ScalarSpec("bool")),
        (aot.AbstractI32, ScalarSpec("int")),
        (aot.AbstractI64, ScalarSpec("int")),
        (aot.AbstractIndex, ScalarSpec("int")),
        (aot.AbstractF32, ScalarSpec("float")),
        (aot.AbstractF64, ScalarSpec("float")),
        (3, ConstantSpec(3)),
        (True, ConstantSpec(True)),
        ("text", ConstantSpec("text")),
        (torch.float16, ConstantSpec("torch.float16")),
        (torch.device("cpu"), ConstantSpec("device(type='cpu')")),
    ],
    ids=str,
)
def test_numbers_and_constants_have_the_type_that_python_gives(type_: Any, leaf: Any) -> None:
    found = signature(lambda self, x=type_: None).inputs
    assert found == (leaf,)
    assert not isinstance(leaf, ConstantSpec) or type(found[0].value) is type(leaf.value)


def test_an_integer_with_bounds_is_a_dimension() -> None:
    size = aot.DimensionInputInfo((1, 8, 64))
    found = signature(lambda self, x=[size]: None)
    assert found.inputs == (ScalarSpec("int", "x[0]"),)
    assert found.dims == (Dim("x[0]", 1, 64, 8),)


def test_results_name_the_dimensions_of_the_arguments() -> None:
    def f(self, x=aot.AbstractTensor("n", 2), k=aot.AbstractIndex) -> Any:
        rows = x.shape[0]
        return [
            IREE.tensor_empty(rows, 3),
            IREE.tensor_empty(k, 2, dtype=torch.int8),
            IREE.tensor_empty(2, 0),
        ]

    found = signature(f)
    assert [leaf.shape for leaf in found.results] == [("n", 3), ("?", 2), (2, 0)]
    assert str(found.results[1]) == "int8[?, 2]"
    assert found.result_tree == ["list", [0, 1, 2]]


def test_results_may_be_numbers_and_constants() -> None:
    def f(self, i=aot.AbstractI32, x=aot.AbstractF64) -> Any:
        return {"i": i, "x": x, "b": i > 1, "text": "t", "none": None, "n": 2}

    assert signature(f).results == (
        ScalarSpec("int"),
        ScalarSpec("float"),
        ScalarSpec("bool"),
        ConstantSpec("t"),
        ConstantSpec(2),
    )
