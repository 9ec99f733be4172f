"""What is wrong with a body, a schema or shapes is said with the operator and the line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from pelton import aot, runtime
from pelton.aot.custom_ops import custom_op, register_body
from pelton.aot.lowering.custom import operator
from tests.aot.custom_ops.operators import bodiless

SHRUNK = """
%0 = tensor.extract_slice %x[0] [1] [1] : $x to tensor<1xf32>
%1 = tensor.cast %0 : tensor<1xf32> to $result
return %1 : $result
"""


def broken(body: Any, schema: str = "(Tensor x, int n=1) -> Tensor") -> Callable[..., Any]:
    """Define an operator with a body, and return what exports it."""
    op = custom_op(
        f"testing::broken{schema}", shapes="n -> n", body=body, eager=lambda x, n=1: x.clone()
    )
    return lambda: aot.export(lambda x: op(x), args=(torch.ones(2),))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("\n  %0 = arith.addf %x, %y : $x\n  return %0 : $x", "line 1 of its body: .*undeclared"),
        ("%0 = arith.addf %x, %x : $x\nreturn %0 :: $x", r"line 2 of its body: .* 2 \| return %0"),
        ("%0 = arith.addf %x, %x : $y\nreturn %0 : $x", r"line 1 of its body has no field \$y"),
        ("return %x : $x\n$", r"line 2 of its body has a '\$' that begins no field"),
        ("%0 = arith.addf %x, %x : $x", "its body: .*terminator|its body: "),
        ("%0 = tensor.cast %x : $x to tensor<2xf32>\nreturn %0 : tensor<2xf32>", "line 2.*result"),
    ],
)  # fmt: skip
def test_wrong_text_is_refused_with_operator_and_line(body: str, message: str) -> None:
    with pytest.raises(aot.ExportError, match=rf"(?s)custom operator testing::broken: {message}"):
        broken(body)()


def test_error_of_a_body_names_the_users_file() -> None:
    with pytest.raises(aot.ExportError) as caught:
        broken("return %y : $x")()
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (lambda builder, x, n: n, "its body returned 1; it must return tensor<\\?xf32>"),
        (lambda builder, x, n: None, "its body returned nothing; it must return"),
        (lambda builder, x, n: builder.sizes["k"], "its body cannot be built: KeyError: 'k'"),
        (lambda builder, x: x, "its body cannot be built: TypeError"),
    ],
)
def test_wrong_function_is_refused_with_the_operator(body: Any, message: str) -> None:
    with pytest.raises(aot.ExportError, match=f"custom operator testing::broken: {message}"):
        broken(body)()


def test_number_that_only_a_run_tells_is_no_field_of_a_text() -> None:
    op = custom_op(
        "testing::broken(Tensor x, SymInt n) -> Tensor",
        shapes="m -> m",
        body="%0 = arith.constant $n : index\nreturn %x : $x",
        eager=lambda x, n: x.clone(),
    )
    with pytest.raises(
        aot.ExportError, match=r"line 1 of its body has no field \$n.*only where it is a constant"
    ):
        aot.export(lambda x, n: op(x, n), args=(torch.ones(2), aot.DimensionInputInfo((1, 2, 3))))


@pytest.mark.parametrize(
    ("schema", "shapes", "message"),
    [
        ("broken(Tensor x) -> Tensor", "n -> n", "must be of the form namespace::name"),
        ("testing::wrong(Tensor x -> Tensor", "n -> n", "custom operator testing::wrong: "),
        ("testing::wrong(Tensor(a!) x) -> Tensor", "n -> n", "it writes to its arguments"),
        ("testing::wrong(Tensor x) -> int", "n -> n", "results are tensors, not int"),
        ("testing::wrong(Tensor x) -> Tensor", "n, n -> n", "for 2 tensors and 1 results"),
        ("testing::wrong(Tensor x) -> Tensor", "n", "have no '->'"),
        ("testing::wrong(Tensor x) -> Tensor", "n -> k", "the size k, which no argument has"),
        ("testing::wrong(Tensor x) -> Tensor", "n -> ...", "the size ..., which no argument has"),
        ("testing::wrong(Tensor x) -> Tensor", "n+1 -> n", "have 'n\\+1'; sizes are names"),
        ("testing::wrong(Tensor x) -> Tensor", "... d0 -> d0", "are the sizes that ... stands for"),
        ("testing::wrong(int n) -> Tensor", " -> 3", "dtypes must say the element types"),
        ("testing::wrong(Tensor result) -> Tensor", "n -> n", "no argument can be called 'result'"),
        ("testing::wrong(Tensor[] xs) -> Tensor", " -> 3", "lists of tensors"),
    ],
)
def test_wrong_declaration_is_refused(schema: str, shapes: str, message: str) -> None:
    with pytest.raises(aot.ExportError, match=message):
        custom_op(schema, shapes=shapes, body="return")


def test_wrong_dtypes_are_refused() -> None:
    for dtypes, message in (("y", "'y', which is no tensor argument"), ([], None)):
        if message is not None:
            with pytest.raises(aot.ExportError, match=message):
                custom_op(
                    "testing::wrong(Tensor x) -> Tensor", shapes="n -> n", body="", dtypes=dtypes
                )
    with pytest.raises(aot.ExportError, match="2 dtypes are given for 1 results"):
        custom_op("testing::wrong(Tensor x) -> Tensor", shapes="n -> n", body="", dtypes=["x", "x"])


@pytest.mark.parametrize(
    "op",
    [torch.ops.aten.relu.default, "testing::gated", torch.relu],
    ids=["overload", "name", "function"],
)
def test_what_is_no_custom_operator_gets_no_body(op: Any) -> None:
    with pytest.raises(aot.ExportError, match="is no custom operator"):
        register_body(op, "return %x : $x")


def test_arguments_that_do_not_fit_the_shapes_are_refused_while_tracing() -> None:
    op = custom_op(
        "testing::same(Tensor x, Tensor y) -> Tensor",
        shapes="n 3, n 3 -> n 3",
        body="%0 = arith.addf %x, %y : $x\nreturn %0 : $x",
        eager=lambda x, y: x + y,
    )
    for other, message in (
        (torch.ones(2, 4), "size 1 of y must be 3"),
        (torch.ones(4, 3), "size 0 of y must be n"),
        (torch.ones(3), "tensor argument 1 has 1 dimensions"),
    ):
        with pytest.raises(aot.ExportError, match=message):
            aot.export(lambda x, y: op(x, y), args=(torch.ones(2, 3), other))


def test_wrong_size_of_a_result_stops_the_program(tmp_path: Path) -> None:
    op = custom_op(
        "testing::shrunk(Tensor x) -> Tensor",
        shapes="n -> n",
        body=SHRUNK,
        eager=lambda x: x.clone(),
    )
    out = aot.export(lambda x: op(x), args=(torch.ones(3),), dynamic_shapes=({0: "n"},))
    out.compile(tmp_path / "shrunk.vmfb")
    exe = runtime.load(tmp_path / "shrunk.vmfb")
    with pytest.raises(aot.PeltonError, match="its body returned another size than n"):
        exe(torch.ones(3))


@pytest.fixture
def body_of_bodiless() -> Iterator[Callable[[str], None]]:
    """Give a body without shapes to the operator that has none, for one test."""
    yield lambda body: register_body(bodiless, body)
    operator._REGISTERED.pop("testing.bodiless", None)


def test_known_sizes_are_checked_where_no_shapes_are_stated(
    body_of_bodiless: Callable[[str], None], tmp_path: Path
) -> None:
    for body, fits in (("return %x : $x", True), (SHRUNK, False)):
        body_of_bodiless(body)
        out = aot.export(
            lambda x, y: bodiless(x) + bodiless(torch.cat([x, y])[:3]),
            args=(torch.ones(3), torch.ones(5)),
            dynamic_shapes=({}, {0: "n"}),
        )
        if fits:
            out.compile(tmp_path / "fits.vmfb")
            exe = runtime.load(tmp_path / "fits.vmfb")
            assert exe(torch.ones(3), torch.ones(4)).tolist() == [2.0, 2.0, 2.0]
        else:
            assert "size 0 of what its body returned is not 3" in str(out.mlir_module)
