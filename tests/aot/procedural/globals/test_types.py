"""Abstract types: what they accept, how they look in the module, and the types of values."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
import torch
from iree.compiler.ir import Location

from pelton import aot
from pelton.aot.procedural.globals.types import (
    Abstractifiable,
    AbstractIntrinsic,
    AbstractSize,
    AbstractTensor,
    AbstractTypedef,
    TreeAbstractifiable,
    abstractify,
    abstractify_single_value,
    from_spec,
    scalar_type_of,
)
from pelton.aot.procedural.values.sizes import DYNAMIC
from pelton.aot.spec.inputs import NamedDimension
from tests.aot.procedural.traces import new_builder

N = NamedDimension("n", 1, 2, 3)


@pytest.mark.parametrize("sizes", [(-1,), (True,), (2.0,), (2, b"n"), (torch.tensor(2),)], ids=str)
def test_what_is_no_size_is_refused_with_the_users_line(sizes: Any) -> None:
    message = f"a size is a number, None or a name, not {re.escape(repr(sizes[-1]))}"
    with pytest.raises(aot.ExportError, match=message) as caught:
        AbstractTensor(*sizes)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize(
    "shape", [[2, 3], (2, 3), torch.Size([2, 3])], ids=["list", "tuple", "Size"]
)
def test_sizes_in_one_container_are_told_how_to_be_given(shape: Any) -> None:
    with pytest.raises(aot.ExportError, match=r"one by one: AbstractTensor\(2, 3\), not"):
        AbstractTensor(shape)


@pytest.mark.parametrize("dtype", ["float32", None, float])
def test_what_is_no_element_type_is_refused(dtype: Any) -> None:
    with pytest.raises(aot.ExportError, match=r"dtype must be a torch\.dtype, got"):
        AbstractTensor(2, dtype=dtype)


def test_named_and_unnamed_dynamic_sizes_are_not_static() -> None:
    tensor = AbstractTensor("batch", 0, None, N, 1)
    assert tensor.sizes == (None, 0, None, None, 1)
    assert tensor.type_shape == [DYNAMIC, 0, DYNAMIC, DYNAMIC, 1]
    assert tensor.size_names() == {0: "batch", 3: "n"}
    assert str(tensor) == "float32[?, 0, ?, ?, 1]"


def test_a_tensor_without_dimensions_is_of_rank_zero() -> None:
    scalar = AbstractTensor(dtype=torch.int64)
    assert (scalar.sizes, scalar.type_shape, scalar.size_names()) == ((), [], {})
    assert (str(scalar), repr(scalar)) == ("int64[]", "AbstractTensor(dtype=torch.int64)")
    assert str(scalar.get_ir_type(new_builder())) == "tensor<i64>"


def test_tensors_are_equal_by_sizes_names_and_element_type() -> None:
    assert AbstractTensor(2, "n") == AbstractTensor(2, "n")
    assert len({AbstractTensor(2, "n"), AbstractTensor(2, "n")}) == 1
    different = [
        AbstractTensor(2),
        AbstractTensor(None),
        AbstractTensor("n"),
        AbstractTensor(N),
        AbstractTensor(2, 1),
        AbstractTensor(2, dtype=torch.float64),
    ]
    assert all(a != b for a, b in itertools.combinations(different, 2))
    assert AbstractTensor(2) != aot.AbstractI64


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (AbstractTensor("n", 4, dtype=torch.bfloat16), "tensor<?x4xbf16>"),
        (AbstractTensor(2, dtype=torch.bool), "tensor<2xi1>"),
        (AbstractTensor(0, dtype=torch.uint8), "tensor<0xi8>"),
        (AbstractSize((1, 2, 3)), "index"),
        (aot.AbstractIndex, "index"),
        (aot.AbstractBool, "i1"),
        (aot.AbstractI32, "i32"),
        (aot.AbstractI64, "i64"),
        (aot.AbstractF32, "f32"),
        (aot.AbstractF64, "f64"),
    ],
    ids=str,
)
def test_types_in_the_module_have_no_sign(type_: AbstractTypedef, text: str) -> None:
    assert str(type_.get_ir_type(new_builder())) == text


def test_an_element_type_that_no_program_takes_is_refused() -> None:
    with pytest.raises(aot.ExportError, match="complex32"):
        AbstractTensor(2, dtype=torch.complex32).get_ir_type(new_builder())


def test_a_size_states_its_bounds() -> None:
    size = AbstractSize((1, 8, 64))
    assert (size.bounds, repr(size)) == ((1, 8, 64), "AbstractSize((1, 8, 64))")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, aot.AbstractBool),
        (0, aot.AbstractI64),
        (2**62, aot.AbstractI64),
        (float("nan"), aot.AbstractF32),
        ("1", None),
        (None, None),
        (1j, None),
    ],
    ids=repr,
)
def test_numbers_have_the_types_of_torchs_defaults(value: Any, expected: Any) -> None:
    assert scalar_type_of(value) is expected


def test_a_tree_keeps_its_structure_and_its_abstract_types() -> None:
    declared = aot.export_parameters(torch.nn.Linear(3, 2))
    types = abstractify(
        {"p": torch.zeros(2, 0, dtype=torch.int16), "n": [1, (2.5, False)], "s": aot.AbstractF64}
    )
    assert types == {
        "p": AbstractTensor(2, 0, dtype=torch.int16),
        "n": [aot.AbstractI64, (aot.AbstractF32, aot.AbstractBool)],
        "s": aot.AbstractF64,
    }
    assert abstractify(declared) == {"weight": AbstractTensor(2, 3), "bias": AbstractTensor(2)}
    assert abstractify(declared["weight"]) == AbstractTensor(2, 3)
    assert abstractify([]) == []


def test_a_declaration_has_the_type_of_its_value() -> None:
    assert abstractify([aot.export_global(torch.zeros(4))]) == [AbstractTensor(4)]


def test_a_value_without_an_abstract_type_is_named_by_its_class() -> None:
    with pytest.raises(
        aot.ExportError, match="a str has no abstract type; give a tensor"
    ) as caught:
        abstractify_single_value("text")
    assert caught.value.location is not None


def test_the_spec_of_a_tensor_names_its_unnamed_dimensions_after_the_argument() -> None:
    spec = aot.InputInfo((2, (1, 4, 8), N), torch.float16)
    assert from_spec(spec, "x") == AbstractTensor(
        2, NamedDimension("x_dim1", 1, 4, 8), N, dtype=torch.float16
    )


def test_the_spec_of_a_dimension_is_a_size() -> None:
    size = from_spec(aot.DimensionInputInfo((1, 8, 64)), "n")
    assert isinstance(size, AbstractSize)
    assert size.bounds == (1, 8, 64)


def test_a_subclass_that_lacks_a_method_is_named() -> None:
    class Half(AbstractIntrinsic, Abstractifiable, TreeAbstractifiable):
        pass

    builder = new_builder()
    with builder.context, Location.unknown():
        value: Any = None
        for call, name in [
            (lambda: Half().get_ir_type(builder), "get_ir_type"),
            (lambda: Half().create_intrinsic(value), "create_intrinsic"),
            (lambda: Half().abstractify(), "abstractify"),
            (lambda: Half().abstractify_tree(), "abstractify_tree"),
        ]:
            with pytest.raises(NotImplementedError, match=rf"^Half does not define {name}\(\)"):
                call()
