"""Definition of custom operators: schemas that are refused, and what torch is told of results."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.custom_ops import custom_op, register_body
from pelton.aot.lowering.custom.operator import find

_numbers = itertools.count()


def define(arguments: str, shapes: str, **options: Any) -> Any:
    """Define an operator of a new name, which is not called for its values."""
    schema = f"testing::defined_{next(_numbers)}{arguments}"
    return custom_op(schema, shapes=shapes, body="return", eager=lambda *_: None, **options)


def fake(operator: Any, *args: Any) -> Any:
    """Return the shapes and element types of the results of a call, which torch.export sees."""
    result = operator(*(a.to("meta") if isinstance(a, torch.Tensor) else a for a in args))
    results = result if isinstance(result, tuple) else (result,)
    return [(tuple(r.shape), r.dtype) for r in results]


@pytest.mark.parametrize("schema", ["name(Tensor x) -> Tensor", "a::b::c(Tensor x)", "a::b", ""])
def test_a_schema_without_a_namespace_or_arguments_is_refused(schema: str) -> None:
    with pytest.raises(aot.ExportError, match="must be of the form namespace::name"):
        custom_op(schema, shapes="n -> n", body="")


@pytest.mark.parametrize(
    ("arguments", "shapes", "options", "message"),
    [
        ("(Tensor(a!) x) -> Tensor", "n -> n", {}, "it writes to its arguments; return"),
        ("(Tensor[] x) -> Tensor", "n -> n", {}, "arguments cannot be lists of tensors"),
        ("(Tensor result1) -> Tensor", "n -> n", {}, "no argument can be called 'result1'"),
        ("(Tensor x, int iterators) -> Tensor", "n -> n", {}, "called 'iterators'"),
        ("(Tensor x) -> int", "n -> n", {}, "results are tensors, not int"),
        ("(Tensor x) -> Tensor", "n -> n", {"dtypes": ["x", "x"]}, "2 dtypes are given for 1 res"),
        ("(Tensor x) -> Tensor", "n -> n", {"dtypes": "y"}, "names 'y', which is no tensor arg"),
        ("(Tensor x, int n) -> Tensor", "n -> n", {"dtypes": "n"}, "names 'n', which is no"),
        ("(Tensor x) -> Tensor", "n, n -> n", {}, "are for 2 tensors and 1 results, the schema"),
        ("(Tensor x) -> Tensor", "n -> n, n", {}, "the schema has 1 and 1"),
        ("(int n) -> Tensor", "-> 3", {}, "without a tensor argument, dtypes must say"),
        ("(Tensor x", "n -> n", {}, "custom operator testing::defined"),
    ],
    ids=[
        "mutable", "list", "result", "iterators", "number", "dtypes", "dtype", "int", "tensors",
        "results", "no_tensor", "syntax",
    ],
)  # fmt: skip
def test_a_definition_that_cannot_be_is_refused(
    arguments: str, shapes: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(aot.ExportError, match=message):
        define(arguments, shapes, **options)


def test_a_refused_definition_has_the_users_line_and_leaves_no_operator() -> None:
    with pytest.raises(aot.ExportError) as caught:
        custom_op("testing::refused(Tensor x) -> int", shapes="n -> n", body="return")
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    assert find("testing.refused") is None
    assert not hasattr(torch.ops.testing, "refused")


def test_results_have_the_sizes_that_the_shapes_name() -> None:
    product = define("(Tensor x, Tensor y) -> (Tensor, Tensor)", "... m k, k n -> ... m n, k 2")
    x, y = torch.zeros(5, 0, 2, 3), torch.zeros(3, 4)
    assert fake(product, x, y) == [((5, 0, 2, 4), torch.float32), ((3, 2), torch.float32)]


def test_element_types_are_those_of_the_first_tensor_unless_stated() -> None:
    x, y = torch.zeros(2, dtype=torch.int16), torch.zeros(2, dtype=torch.float64)
    plain = define("(int n, Tensor x, Tensor y) -> Tensor", "n, n -> n")
    assert fake(plain, 3, x, y) == [((2,), torch.int16)]
    stated = define(
        "(Tensor x, Tensor y) -> (Tensor, Tensor)", "n, n -> n, n", dtypes=["y", torch.bool]
    )
    assert fake(stated, x, y) == [((2,), torch.float64), ((2,), torch.bool)]


def test_a_tensor_that_is_not_given_counts_for_nothing() -> None:
    optional = define("(Tensor? x, Tensor y) -> Tensor", "n, n -> n")
    y = torch.zeros(2, dtype=torch.int8)
    assert fake(optional, None, y) == [((2,), torch.int8)]


def test_an_operator_without_results_gives_none() -> None:
    told = define("(Tensor x) -> ()", "n ->")
    assert told(torch.zeros(2, device="meta")) is None


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        ((2, 3), (4, 4), "size 0 of y must be k, 3: 4"),
        ((2, 3), (3,), r"tensor argument 1 has 1 dimensions, its shape is \[k n\]"),
        ((2,), (3, 4), "tensor argument 0 has 1 dimensions"),
    ],
    ids=["size", "shorter", "first"],
)
def test_arguments_of_other_shapes_are_refused(x: Any, y: Any, message: str) -> None:
    product = define("(Tensor x, Tensor y) -> Tensor", "m k, k n -> m n")
    with pytest.raises(Exception, match=message):
        fake(product, torch.zeros(x), torch.zeros(y))


def test_the_body_is_found_by_its_name_with_the_place_of_its_definition() -> None:
    custom_op(
        "testing::placed(Tensor x) -> Tensor",
        shapes="n -> n",
        body="\n    %0 = first\n      return %0\n",
        eager=lambda x: x.clone(),
    )
    found = find("testing.placed")
    assert found is not None
    assert found.body == "%0 = first\n  return %0"
    assert found.location is not None
    assert found.location.file == __file__


# Bodies of operators of torch.library


@torch.library.custom_op("testing::library", mutates_args=())
def library(x: torch.Tensor) -> torch.Tensor:
    return x + x


@pytest.mark.parametrize(
    "op", [torch.add, torch.ops.aten.add.Tensor, torch.ops.testing.library, "testing::library"],
    ids=["function", "aten", "packet", "text"],
)  # fmt: skip
def test_what_is_no_custom_operator_gets_no_body(op: Any) -> None:
    with pytest.raises(aot.ExportError, match="is no custom operator; pass what torch"):
        register_body(op, "return %x : $x")


def test_a_body_may_be_given_again_and_by_overload() -> None:
    register_body(library, "first", shapes="n -> n")
    register_body(torch.ops.testing.library.default, "second")
    found = find("testing.library")
    assert found is not None
    assert (found.body, found.shapes) == ("second", None)


def test_shapes_that_do_not_fit_a_library_operator_are_refused() -> None:
    with pytest.raises(aot.ExportError, match="testing::library: the shapes"):
        register_body(library, "return", shapes="n, n -> n")
