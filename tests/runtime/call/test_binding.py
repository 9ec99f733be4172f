"""Argument binding: accepted calls, and the error of each refused one."""

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch

from pelton.runtime.call.binding import Binder
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import (
    ConstantSpec,
    Leaf,
    Parameter,
    ScalarSpec,
    Signature,
    TensorSpec,
)
from pelton.runtime.call.sizes import Dim, Profile, Size
from pelton.runtime.errors import SignatureError

FLOAT = DTYPES["float32"]
BATCH = Dim("batch", 1, 8)


def tensor(*shape: Size) -> TensorSpec:
    return TensorSpec(FLOAT, shape)


def signature_of(*dims: Dim, **inputs: Leaf) -> Signature:
    parameters = tuple(
        Parameter(name, "POSITIONAL_OR_KEYWORD", index) for index, name in enumerate(inputs)
    )
    return Signature("main", parameters, tuple(inputs.values()), dims=dims)


def bind(signature: Signature, *args: Any, **kwargs: Any) -> list[Any]:
    """Bind and check; return the leaves or raise the error of a call."""
    binder = Binder(signature)
    leaves = binder.leaves(args, kwargs)
    if not binder.fits(leaves):
        binder.explain(leaves)
    return list(leaves)


def refusal(signature: Signature, *args: Any, **kwargs: Any) -> str:
    with pytest.raises(SignatureError) as caught:
        bind(signature, *args, **kwargs)
    return str(caught.value)


def zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(shape)


# Names and structure

TWO = signature_of(x=tensor(2), y=tensor(2))


def test_arguments_are_bound_by_position_and_by_name() -> None:
    a, b = zeros(2), zeros(2)
    for leaves in (bind(TWO, a, b), bind(TWO, a, y=b), bind(TWO, y=b, x=a)):
        assert leaves[0] is a
        assert leaves[1] is b


def test_missing_argument_is_named() -> None:
    assert refusal(TWO, zeros(2)) == (
        "main(): missing a required argument: 'y'; "
        "expected main(x: float32[2], y: float32[2]) -> ()"
    )


def test_unknown_name_is_named() -> None:
    assert refusal(TWO, zeros(2), zeros(2), z=1) == (
        "main(): got an unexpected keyword argument 'z'; "
        "expected main(x: float32[2], y: float32[2]) -> ()"
    )


def test_surplus_argument_is_described() -> None:
    message = refusal(TWO, zeros(2), zeros(2), zeros(3))
    assert "main(): too many positional arguments" in message
    assert "float32[3]" in message


def test_argument_given_twice_is_named() -> None:
    assert refusal(TWO, zeros(2), x=zeros(2)).startswith("main(): multiple values for argument 'x'")


NESTED = Signature(
    "main",
    (
        Parameter("cache", "POSITIONAL_OR_KEYWORD", ["dict", [["k", ["list", [1]]], ["v", 0]]]),
        Parameter("mask", "POSITIONAL_OR_KEYWORD", None),
    ),
    (tensor(2), tensor(3)),
)


def test_containers_are_taken_apart_into_the_order_of_the_inputs() -> None:
    k, v = zeros(3), zeros(2)
    leaves = bind(NESTED, {"k": [k], "v": v})
    assert leaves[0] is v
    assert leaves[1] is k


def test_other_structure_is_refused_with_the_path() -> None:
    assert refusal(NESTED, {"k": [], "v": zeros(2)}) == (
        "main(): argument cache['k'] expects [*], got list of 0 items; "
        "pass the same structure as at export"
    )


def test_tensor_in_place_of_none_is_refused() -> None:
    assert refusal(NESTED, {"k": [zeros(3)], "v": zeros(2)}, zeros(1)) == (
        "main(): argument mask expects None, got Tensor of shape (1,)"
    )


def test_wrong_leaf_is_named_by_its_path() -> None:
    assert refusal(NESTED, {"k": [zeros(4)], "v": zeros(2)}) == (
        "main(): argument cache['k'][0]: dimension 0 is fixed to 3, got 4 "
        "(expected float32[3], got float32[4])"
    )


def test_variadic_arguments_are_bound() -> None:
    signature = Signature(
        "main",
        (
            Parameter("xs", "VAR_POSITIONAL", ["tuple", [0, 1]]),
            Parameter("named", "VAR_KEYWORD", ["dict", [["a", 2]]]),
        ),
        (tensor(1), tensor(2), tensor(3)),
    )
    given = [zeros(1), zeros(2), zeros(3)]
    leaves = bind(signature, given[0], given[1], a=given[2])
    assert all(leaf is value for leaf, value in zip(leaves, given, strict=True))
    assert "argument xs expects (*, *), got tuple of 1 items" in refusal(
        signature, given[0], a=given[2]
    )


# Constants


@pytest.mark.parametrize("value", [None, True, 3, 0.5, "fast", float("nan")])
def test_constant_may_be_left_out_or_given_again(value: Any) -> None:
    signature = signature_of(x=tensor(2), mode=ConstantSpec(value))
    x = zeros(2)
    assert len(bind(signature, x)) == 1
    assert len(bind(signature, x, value)) == 1
    assert len(bind(signature, x, mode=value)) == 1


@pytest.mark.parametrize(("value", "other"), [(True, 1), (1, 1.0), (0.0, -0.0), ("1", 1), (3, 4)])
def test_other_value_of_a_constant_is_refused(value: Any, other: Any) -> None:
    signature = signature_of(x=tensor(2), mode=ConstantSpec(value))
    assert refusal(signature, zeros(2), other) == (
        f"main(): argument mode was fixed to {value!r} at export, got {other!r}; "
        "export again with an input spec for it"
    )


def test_constant_object_is_known_by_its_text() -> None:
    signature = signature_of(x=tensor(2), dtype=ConstantSpec("torch.float64"))
    assert len(bind(signature, zeros(2), torch.float64)) == 1
    assert "got torch.float32" in refusal(signature, zeros(2), torch.float32)


def test_tensor_for_a_constant_is_refused() -> None:
    signature = signature_of(x=tensor(2), n=ConstantSpec(3))
    assert "argument n was fixed to 3 at export" in refusal(signature, zeros(2), torch.tensor(3))


# Types and ranks


@pytest.mark.parametrize(
    ("value", "described"),
    [
        ([1.0, 2.0], "list [1.0, 2.0]"),
        (None, "NoneType None"),
        ("text", "str 'text'"),
        (1.5, "float 1.5"),
        (np.array(["a", "b"]), "ndarray array(['a', 'b'], dtype='<U1')"),
    ],
)
def test_what_is_no_tensor_is_refused(value: Any, described: str) -> None:
    assert refusal(signature_of(x=tensor(2)), value) == (
        f"main(): argument x expects a tensor float32[2], got {described}"
    )


def test_long_value_is_shortened_in_the_message() -> None:
    message = refusal(signature_of(x=tensor(2)), list(range(1000)))
    assert message.endswith("...")
    assert len(message) < 140


@pytest.mark.parametrize("given", [torch.zeros(2, dtype=torch.float16), np.zeros(2, np.float16)])
def test_other_element_type_is_refused_with_both(given: Any) -> None:
    assert refusal(signature_of(x=tensor(2)), given) == (
        "main(): argument x expects float32[2], got float16[2]; "
        "cast it to float32 or export with float16"
    )


@pytest.mark.parametrize("shape", [(), (2, 1), (1, 1, 2)])
def test_other_rank_is_refused_with_both(shape: tuple[int, ...]) -> None:
    message = refusal(signature_of(BATCH, x=tensor("batch")), zeros(*shape))
    text = ", ".join(map(str, shape))
    assert message == (
        f"main(): argument x expects float32[batch] with 1 dimensions, "
        f"got float32[{text}] with {len(shape)}"
    )


def test_shape_of_another_sequence_type_is_compared_by_value() -> None:
    class Array:
        dtype = np.dtype("float32")

        def __init__(self, shape: list[int]) -> None:
            self.shape = shape

    assert len(bind(signature_of(x=tensor(2)), Array([2]))) == 1
    assert "dimension 0 is fixed to 2, got 3" in refusal(signature_of(x=tensor(2)), Array([3]))


# Sizes


@pytest.mark.parametrize("size", [1, 2, 8])
def test_size_within_its_range_fits(size: int) -> None:
    assert len(bind(signature_of(BATCH, x=tensor("batch", 4)), zeros(size, 4))) == 1


@pytest.mark.parametrize("size", [0, 9])
def test_size_outside_its_range_is_refused(size: int) -> None:
    assert refusal(signature_of(BATCH, x=tensor("batch", 4)), zeros(size, 4)) == (
        f"main(): argument x: dimension 0 ('batch') is {size}, outside its range 1..8; "
        "pass a size within it or export with wider bounds"
    )


def test_range_without_a_largest_size_is_shown_open() -> None:
    signature = signature_of(Dim("n", 2), x=tensor("n"))
    assert "is 1, outside its range 2..; " in refusal(signature, zeros(1))


def test_fixed_size_that_differs_is_refused() -> None:
    assert refusal(signature_of(BATCH, x=tensor("batch", 4)), zeros(2, 5)) == (
        "main(): argument x: dimension 1 is fixed to 4, got 5 "
        "(expected float32[batch, 4], got float32[2, 5])"
    )


def test_dimensions_of_one_name_must_be_equal() -> None:
    signature = signature_of(BATCH, x=tensor("batch", 4), y=tensor(2, "batch"))
    assert refusal(signature, zeros(3, 4), zeros(2, 4)) == (
        "main(): argument y: dimension 1 ('batch') is 4, but dimension 0 of argument x is 3; "
        "both must be equal"
    )


def test_dimensions_of_one_tensor_must_be_equal_too() -> None:
    assert refusal(signature_of(BATCH, x=tensor("batch", "batch")), zeros(3, 4)) == (
        "main(): argument x: dimension 1 ('batch') is 4, but dimension 0 of argument x is 3; "
        "both must be equal"
    )


def test_number_must_equal_the_dimension_that_it_names() -> None:
    signature = signature_of(BATCH, x=tensor("batch"), n=ScalarSpec("int", "batch"))
    assert len(bind(signature, zeros(3), 3)) == 2
    assert refusal(signature, zeros(3), 4) == (
        "main(): argument n ('batch') is 4, but dimension 0 of argument x is 3; both must be equal"
    )
    assert "argument n ('batch') is 9, outside its range 1..8" in refusal(signature, zeros(3), 9)


TWICE = signature_of(BATCH, x=tensor("batch"), y=tensor(["*", 2, "batch"]))


def test_derived_size_is_compared_with_what_it_is_derived_from() -> None:
    assert len(bind(TWICE, zeros(3), zeros(6))) == 2
    assert refusal(TWICE, zeros(3), zeros(7)) == (
        "main(): argument y: dimension 0 must be 2*batch = 6 with batch=3, got 7"
    )


def test_derived_size_before_what_it_is_derived_from_is_compared_too() -> None:
    signature = signature_of(BATCH, y=tensor(["*", 2, "batch"]), x=tensor("batch"))
    assert refusal(signature, zeros(8), zeros(3)) == (
        "main(): argument y: dimension 0 must be 2*batch = 6 with batch=3, got 8"
    )


ONLY_TWICE = signature_of(BATCH, x=tensor(["*", 2, "batch"]), y=tensor(["*", 3, "batch"]))


def test_dimension_that_shows_only_in_derived_sizes_is_checked() -> None:
    assert len(bind(ONLY_TWICE, zeros(4), zeros(6))) == 2
    assert refusal(ONLY_TWICE, zeros(4), zeros(9)) == (
        "main(): argument y: dimension 0 must be 3*batch = 6 with batch=2, got 9"
    )
    assert refusal(ONLY_TWICE, zeros(18), zeros(27)) == (
        "main(): argument x: dimension 0 is 18, which is 2*batch, so 'batch' is 9, "
        "outside its range 1..8; pass a size within it or export with wider bounds"
    )


def test_derived_size_that_no_dimension_gives_is_refused() -> None:
    signature = signature_of(BATCH, x=tensor(["*", 2, "batch"]))
    assert refusal(signature, zeros(7)) == (
        "main(): argument x: dimension 0 must be 2*batch, got 7"
    )


def test_derived_size_of_two_dimensions_is_compared() -> None:
    dims = (BATCH, Dim("length", 1, 4))
    size = ["+", "batch", "length"]
    signature = signature_of(*dims, x=tensor("batch", "length"), y=tensor(size))
    assert len(bind(signature, zeros(2, 3), zeros(5))) == 2
    assert refusal(signature, zeros(2, 3), zeros(6)) == (
        "main(): argument y: dimension 0 must be batch + length = 5 with batch=2, length=3, got 6"
    )


@pytest.mark.parametrize(("operator", "actual"), [("%", 3), ("//", 1), ("min", 5), ("max", 8)])
def test_derived_size_with_many_solutions_fits_where_it_is_right(
    operator: str, actual: int
) -> None:
    signature = signature_of(BATCH, x=tensor("batch"), y=tensor([operator, "batch", 5]))
    assert len(bind(signature, zeros(8), zeros(actual))) == 2
    assert f"got {actual + 1}" in refusal(signature, zeros(8), zeros(actual + 1))


def test_size_that_export_could_not_state_is_not_checked() -> None:
    signature = signature_of(x=tensor("?"), y=tensor("?"))
    assert len(bind(signature, zeros(2), zeros(3))) == 2


def test_call_that_fits_no_profile_is_refused_with_all_of_them() -> None:
    signature = dataclasses.replace(
        signature_of(BATCH, x=tensor("batch")),
        profiles=(Profile("one", {"batch": (1, 1, 1)}), Profile("many", {"batch": (4, 6, 8)})),
    )
    assert len(bind(signature, zeros(1))) == len(bind(signature, zeros(4))) == 1
    assert refusal(signature, zeros(2)) == (
        "main(): no profile takes batch=2 (dimension 0 of argument x); "
        "the profiles are 'one' (batch=1..1), 'many' (batch=4..8)"
    )


# Numbers


@pytest.mark.parametrize("value", [0, -3, np.int32(7), 2**63 - 1, -(2**63)])
def test_integers_of_every_library_fit_an_int(value: Any) -> None:
    assert bind(signature_of(n=ScalarSpec("int")), value) == [value]


@pytest.mark.parametrize("value", [0.5, 2, np.float32(0.5), Fraction(1, 2)])
def test_numbers_of_every_library_fit_a_float(value: Any) -> None:
    assert bind(signature_of(n=ScalarSpec("float")), value) == [value]


@pytest.mark.parametrize(
    ("kind", "value", "described"),
    [
        ("int", 1.0, "float 1.0"),
        ("int", True, "bool True"),
        ("int", "1", "str '1'"),
        ("int", torch.tensor(1), "int64[]"),
        ("float", True, "bool True"),
        ("float", None, "NoneType None"),
        ("bool", 1, "int 1"),
    ],
)
def test_other_kind_of_number_is_refused(kind: str, value: Any, described: str) -> None:
    assert refusal(signature_of(n=ScalarSpec(kind)), value) == (
        f"main(): argument n expects {kind}, got {described}"
    )


@pytest.mark.parametrize(("kind", "value"), [("int", 2**63), ("int", -(2**63) - 1)])
def test_integer_of_more_than_64_bits_is_refused(kind: str, value: int) -> None:
    message = f"main(): argument n expects {kind} of 64 bits, got {value}"
    assert refusal(signature_of(n=ScalarSpec(kind)), value) == message


def test_integer_beyond_the_largest_float_is_refused() -> None:
    message = refusal(signature_of(n=ScalarSpec("float")), 10**400)
    assert message.startswith("main(): argument n expects float of 64 bits, got 1000")


def test_first_wrong_argument_is_the_one_that_is_named() -> None:
    assert "argument x" in refusal(TWO, zeros(3), zeros(3))
