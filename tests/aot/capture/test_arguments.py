"""Arguments of an export: inputs, constants, containers, dynamic sizes, and what is refused."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import torch
from torch.export import Dim

from pelton import aot
from pelton.aot.capture.arguments import Arguments, TracedInput, flatten_arguments, shift
from pelton.runtime.call.signature import ConstantSpec


def arguments_of(function: Any, *args: Any, shapes: Any = None, **kwargs: Any) -> Arguments:
    return flatten_arguments(function, args, kwargs, shapes)


def two(x: Any, y: Any = 3) -> None:
    """A function of an input and a default."""


def variadic(first: Any, *rest: Any, flag: bool = True, **named: Any) -> None:
    """A function of every kind of parameter."""


class Pair(NamedTuple):
    left: Any
    right: Any


X = torch.arange(6.0).reshape(2, 3)


# Inputs and constants


def test_tensors_are_inputs_and_other_values_constants() -> None:
    found = arguments_of(two, X)
    (leaf,) = found.inputs
    assert (leaf.index, leaf.path, leaf.axes) == (0, "x", {})
    assert found.constants() == {1: ConstantSpec(3)}
    assert [p.name for p in found.parameters] == ["x", "y"]


def test_an_example_is_a_copy_of_the_tensor() -> None:
    given = torch.ones(2, requires_grad=True)
    (leaf,) = arguments_of(two, given).inputs
    assert leaf.example is not given and not leaf.example.requires_grad
    assert leaf.example.data_ptr() != given.data_ptr()
    assert torch.equal(leaf.example, given)


def test_a_tensor_given_twice_is_two_inputs() -> None:
    left, right = arguments_of(two, X, X).inputs
    assert left.example.data_ptr() != right.example.data_ptr()


def test_a_tensor_without_data_gets_zeros_as_example() -> None:
    (leaf,) = arguments_of(two, torch.empty(2, 3, dtype=torch.int16, device="meta")).inputs
    assert leaf.example.dtype is torch.int16 and leaf.example.device.type == "cpu"
    assert torch.equal(leaf.example, torch.zeros(2, 3, dtype=torch.int16))


def test_constants_without_a_json_form_are_stated_by_repr() -> None:
    found = arguments_of(two, None, torch.float32)
    assert found.constants() == {0: ConstantSpec("torch.float32")}
    assert found.inputs == []


def test_only_specs_are_inputs_where_asked() -> None:
    info = aot.InputInfo((2,), torch.float32)
    found = flatten_arguments(two, (X, info), {}, None, only_specs=True)
    assert [leaf.path for leaf in found.inputs] == ["y"]
    assert found.leaves[0] is X


def test_specs_of_tensors_and_integers() -> None:
    info = aot.InputInfo((aot.NamedDimension("n", 1, 4, 8), 2), torch.int8)
    tensor, number = arguments_of(two, info, aot.DimensionInputInfo((1, 5, 9))).inputs
    assert (tuple(tensor.example.shape), tensor.example.dtype) == ((4, 2), torch.int8)
    assert [*tensor.axes] == [0] and tensor.axes[0].name == "n"
    assert number.example == 5
    assert (number.axes[-1].min, number.axes[-1].max) == (1, 9)


def test_an_integer_is_an_input_only_where_its_size_is_dynamic() -> None:
    constant = arguments_of(two, X, 7)
    assert [leaf.path for leaf in constant.inputs] == ["x"]
    dynamic = arguments_of(two, X, 7, shapes={"y": "n"})
    assert [leaf.path for leaf in dynamic.inputs] == ["x", "y"]
    assert dynamic.inputs[1].axes[-1].name == "n"


@pytest.mark.parametrize("value", [True, 1.5, "text"])
def test_a_size_for_a_constant_is_refused(value: Any) -> None:
    with pytest.raises(aot.DynamicShapeError, match=r"argument y: .* for a constant"):
        arguments_of(two, X, value, shapes={"y": "n"})


def test_traced_inputs_have_their_dynamic_sizes_free() -> None:
    traced = TracedInput("value", torch.float32, (None, 3, 0), 5)
    tensor, number = arguments_of(two, traced, TracedInput("n", size=4)).inputs
    assert tuple(tensor.example.shape) == (5, 3, 0)
    assert [*tensor.axes] == [0] and not tensor.axes[0].strict
    assert number.example == 4 and [*number.axes] == [-1]


# Containers and kinds of parameters


def test_paths_name_the_leaves_of_containers() -> None:
    found = arguments_of(two, {"a": [X, None, (X,)]}, Pair(X, "tanh"))
    assert [leaf.path for leaf in found.inputs] == ["x['a'][0]", "x['a'][2][0]", "y.left"]
    assert [leaf.index for leaf in found.inputs] == [0, 1, 2]
    assert found.constants() == {3: ConstantSpec("tanh")}


def test_arguments_are_rebuilt_with_new_values_for_the_inputs() -> None:
    found = arguments_of(two, {"a": [X, None]}, Pair(X, "tanh"))
    assert found.rebuild(["one", "two"]) == {"x": {"a": ["one", None]}, "y": Pair("two", "tanh")}
    with pytest.raises(ValueError, match="argument"):
        found.rebuild(["one"])


def test_tied_leaves_get_the_value_of_the_first() -> None:
    found = arguments_of(two, X, X)
    found.inputs.pop()
    found.ties[1] = 0
    assert found.rebuild(["new"]) == {"x": "new", "y": "new"}


def test_a_call_has_the_form_of_the_function() -> None:
    found = arguments_of(variadic, X, X, 2, flag=False, extra=X)
    args, kwargs = found.call_form(found.rebuild(["a", "b", "c"]))
    assert (args, kwargs) == (["a", "b", 2], {"flag": False, "extra": "c"})
    assert [p.kind for p in found.parameters] == [
        "POSITIONAL_OR_KEYWORD", "VAR_POSITIONAL", "KEYWORD_ONLY", "VAR_KEYWORD",
    ]  # fmt: skip


def test_a_function_without_a_signature_takes_what_it_is_given() -> None:
    found = arguments_of(torch.add, X, X, alpha=2)
    assert [p.kind for p in found.parameters] == ["VAR_POSITIONAL", "VAR_KEYWORD"]
    args, kwargs = found.call_form(found.rebuild([1, 2]))
    assert (args, kwargs) == ([1, 2], {"alpha": 2})


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(aot.ExportError, match=r"two\(x.* cannot be called with these arguments"):
        arguments_of(two)
    with pytest.raises(aot.ExportError, match="cannot be called"):
        arguments_of(two, X, z=1)


def test_a_dict_key_without_a_json_form_is_refused() -> None:
    with pytest.raises(aot.ExportError, match=r"argument x: dict key .*None"):
        arguments_of(two, {None: X})


@pytest.mark.parametrize(
    "tree, shifted",
    [
        (None, None),
        (0, 2),
        (["list", []], ["list", []]),
        (["dict", [["a", 1], ["b", None]]], ["dict", [["a", 3], ["b", None]]]),
        (["namedtuple", "m:P", [["l", 0]]], ["namedtuple", "m:P", [["l", 2]]]),
    ],
)
def test_trees_are_shifted(tree: Any, shifted: Any) -> None:
    assert shift(tree, 2) == shifted


# What cannot be an input


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_unknown_element_types_are_refused() -> None:
    with pytest.raises(aot.ExportError, match=r"argument x has element type torch.complex32"):
        arguments_of(two, torch.zeros(2, dtype=torch.complex32))
    with pytest.raises(aot.ExportError, match="cannot be exported; known: bool, int8"):
        arguments_of(two, aot.InputInfo((2,), torch.complex32))


@pytest.mark.filterwarnings("ignore:torch.quantize_per_tensor")
def test_sparse_and_quantized_tensors_are_refused() -> None:
    with pytest.raises(aot.ExportError, match=r"argument x is a torch.sparse_coo tensor; pass a"):
        arguments_of(two, X.to_sparse())
    quantized = torch.quantize_per_tensor(X, 0.1, 0, torch.qint8)
    with pytest.raises(aot.ExportError, match="argument x is quantized; pass its int_repr"):
        arguments_of(two, quantized)


# `dynamic_shapes`


@pytest.mark.parametrize(
    "shapes",
    [{"x": {0: "n"}}, {"x": ("n", None)}, ({0: "n"},), [{-2: "n"}, None]],
    ids=str,
)  # fmt: skip
def test_forms_of_dynamic_shapes(shapes: Any) -> None:
    (leaf,) = arguments_of(two, X, shapes=shapes).inputs
    assert [*leaf.axes] == [0] and leaf.axes[0].name == "n"
    assert set(leaf.torch_spec) == {0}


@pytest.mark.parametrize("shapes", [None, {}, (), {"x": None}, {"x": {}}, {"x": {0: 2, 1: None}}])
def test_static_sizes_have_no_entry(shapes: Any) -> None:
    (leaf,) = arguments_of(two, X, shapes=shapes).inputs
    assert leaf.axes == {} and leaf.torch_spec is None


@pytest.mark.parametrize(
    "shapes",
    [(None, {0: "n"}, {0: "n"}), (None, ({0: "n"}, {0: "n"}))],
    ids=["one by one", "nested"],
)
def test_entries_of_variadic_parameters(shapes: Any) -> None:
    found = arguments_of(variadic, X, X, X, shapes=shapes)
    assert [[*leaf.axes] for leaf in found.inputs] == [[], [0], [0]]


def test_entries_of_keyword_arguments_stand_by_their_names() -> None:
    found = arguments_of(variadic, X, extra=X, other=X, shapes={"other": {1: "n"}})
    assert [(leaf.path, [*leaf.axes]) for leaf in found.inputs] == [
        ("first", []), ("named['extra']", []), ("named['other']", [1]),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "shapes, message",
    [
        ({"z": {0: "n"}}, "dynamic_shapes names 'z'; the parameters are x, y"),
        ((None, None, None), "dynamic_shapes has 3 entries for 2 parameters"),
        ("n", "must be a dict by parameter name or a sequence in their order, got 'n'"),
        ({"x": {2: "n"}}, "argument x: there is no dimension 2; it has 2"),
        ({"x": ("n",)}, "argument x: dynamic_shapes gives 1 sizes for 2 dimensions"),
        ({"x": 3}, "argument x: dynamic_shapes for a tensor is"),
    ],
)
def test_wrong_dynamic_shapes_are_refused(shapes: Any, message: str) -> None:
    with pytest.raises(aot.DynamicShapeError, match=message):
        arguments_of(two, X, shapes=shapes)


# Larger examples


def test_a_larger_example_has_dynamic_sizes_above_one() -> None:
    (leaf,) = arguments_of(two, torch.ones(1, 1), shapes={"x": {0: "n"}}).inputs
    assert tuple(leaf.larger_example().shape) == (3, 1)


def test_a_larger_example_stays_within_bounds() -> None:
    shapes = {"x": {0: Dim("a", min=5, max=9), 1: Dim("b", min=1, max=2)}}
    (leaf,) = arguments_of(two, torch.ones(6, 1), shapes=shapes).inputs
    assert tuple(leaf.larger_example().shape) == (5, 2)


def test_a_static_example_and_an_integer_stay_as_they_are() -> None:
    tensor, number = arguments_of(two, X, aot.DimensionInputInfo((0, 1, 9))).inputs
    assert tensor.larger_example() is tensor.example
    assert number.larger_example() == 1
    assert number.torch_spec is number.axes[-1].torch
