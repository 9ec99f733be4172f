"""Const-eval barriers: which reductions of constants get them."""

from __future__ import annotations

import pytest

from pelton.codegen.faults.const_eval_barriers import insert_const_eval_barriers
from tests.codegen.ir import reprinted, rewritten

BARRIER = "util.optimization_barrier"
REDUCTION = """
func.func @main(%x: tensor<6xi32>, %y: tensor<i32>, %s: i32) -> tensor<i32> {{
  %c = arith.constant {constant} : tensor<6xi32>
  %one = arith.constant 1 : i32
  {computed}
  %0 = linalg.generic {{
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
    iterator_types = ["reduction"]
  }} ins({inputs} : tensor<6xi32>, tensor<6xi32>) outs(%y : tensor<i32>) {{
  ^bb0(%in: i32, %other: i32, %out: i32):
    {body}
    %total = arith.addi %out, {combined} : i32
    linalg.yield %total : i32
  }} -> tensor<i32>
  return %0 : tensor<i32>
}}
"""


def reduction(
    body: str = "",
    combined: str = "%in",
    inputs: str = "%c, %c",
    constant: str = "dense<1>",
    computed: str = "",
) -> str:
    return REDUCTION.format(
        body=body, combined=combined, inputs=inputs, constant=constant, computed=computed
    )


def elementwise(body: str, inputs: str = "%x, %x") -> str:
    """Return an operation that computes `%e`, of which an element is `%1`."""
    return f"""%e = linalg.generic {{
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]
  }} ins({inputs} : tensor<6xi32>, tensor<6xi32>) outs(%x : tensor<6xi32>) {{
  ^bb0(%in: i32, %other: i32, %out: i32):
    {body}
    linalg.yield %1 : i32
  }} -> tensor<6xi32>"""


FILL = """%empty = tensor.empty() : tensor<6xi32>
  %e = linalg.fill ins(%one : i32) outs(%empty : tensor<6xi32>) -> tensor<6xi32>"""
CLAMP = "%0 = arith.maxsi %in, %one : i32 %1 = arith.minsi %0, %one : i32"
CHOICE = "%0 = arith.cmpi eq, %one, %one : i32 %1 = arith.select %0, %in, %other : i32"


@pytest.mark.parametrize(
    "text",
    [
        reduction(),
        reduction("%1 = arith.addi %in, %other : i32", "%1"),
        reduction(computed=FILL, inputs="%e, %c"),
        reduction(
            computed=elementwise("%1 = arith.muli %in, %in : i32", "%c, %c"), inputs="%e, %c"
        ),
        reduction(computed=elementwise("%1 = arith.subi %in, %other : i32"), inputs="%e, %c"),
        reduction(computed=elementwise("%1 = arith.xori %in, %in : i32"), inputs="%c, %e"),
        reduction(computed=elementwise(CLAMP), inputs="%e, %c"),
        reduction(computed=elementwise(CHOICE, "%c, %x"), inputs="%e, %e"),
    ],
    ids=["splat", "sum", "filled", "product", "difference", "exclusive or", "clamp", "choice"],
)
def test_reduction_that_may_be_of_a_constant_gets_barriers(text: str) -> None:
    assert text_after(text).count(BARRIER) == 2


def text_after(text: str) -> str:
    """Return the module after the pass; barriers are no constants, so it leaves them alone."""
    return rewritten(text, insert_const_eval_barriers)


@pytest.mark.parametrize(
    "text",
    [
        reduction(inputs="%x, %x"),
        reduction("%1 = arith.addi %in, %other : i32", "%1", "%c, %x"),
        reduction("%1 = arith.subi %in, %other : i32", "%1", "%x, %x"),
        reduction(constant="dense<[1, 2, 3, 4, 5, 6]>"),
        reduction(combined="%s"),
        reduction("%i = linalg.index 0 : index %1 = arith.index_cast %i : index to i32", "%1"),
        reduction().replace("arith.addi %out, %in", "arith.maxsi %out, %in"),
        reduction(computed=elementwise("%1 = arith.subi %in, %one : i32"), inputs="%e, %c"),
        reduction(computed=elementwise("%1 = arith.maxsi %in, %one : i32"), inputs="%e, %c"),
        reduction(computed=elementwise(CHOICE), inputs="%e, %c"),
        reduction().replace('"reduction"', '"parallel"').replace("(i) -> ()", "(i) -> (i)")
        .replace("tensor<i32>", "tensor<6xi32>"),
    ],
    ids=[
        "input", "sum with an input", "difference of inputs", "several constants", "scalar input",
        "loop index", "maximum", "difference", "half a clamp", "choice", "elementwise",
    ],
)  # fmt: skip
def test_other_reductions_are_evaluated_as_without_the_pass(text: str) -> None:
    assert text_after(text) == reprinted(text)


def test_dynamic_sizes_are_no_constants() -> None:
    text = reduction().replace("tensor<6xi32>", "tensor<?xi32>")
    text = text.replace(
        "%c = arith.constant dense<1> : tensor<?xi32>\n  %one = arith.constant 1 : i32",
        "%one = arith.constant 1 : i32 %n = arith.constant 6 : index %e = tensor.empty(%n) : "
        "tensor<?xi32> %c = linalg.fill ins(%one : i32) outs(%e : tensor<?xi32>) -> tensor<?xi32>",
    )
    assert "linalg.fill" in text
    assert text_after(text) == reprinted(text)


POOLING = """
func.func @main(%x: tensor<1x4x4x2xf32>) -> tensor<1x2x2x2xf32> {{
  %c = arith.constant dense<1.0> : tensor<1x4x4x2xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %zero = arith.constant dense<0.0> : tensor<1x2x2x2xf32>
  %0 = linalg.pooling_nhwc_sum {{strides = dense<2> : tensor<2xi64>}}
    ins({input}, %window : tensor<1x4x4x2xf32>, tensor<2x2xf32>)
    outs(%zero : tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  return %0 : tensor<1x2x2x2xf32>
}}
"""


def test_pooling_of_a_constant_gets_barriers() -> None:
    assert text_after(POOLING.format(input="%c")).count(BARRIER) == 2
    plain = POOLING.format(input="%x")
    assert text_after(plain) == reprinted(plain)
