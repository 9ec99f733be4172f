"""Expansion of custom operators into calls of their bodies."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from iree.compiler.ir import Context, Module, Operation

from pelton import aot
from pelton.aot.ir.module import CUSTOM_OP, operations_within
from pelton.aot.lowering.custom import operator
from pelton.aot.lowering.custom.expand import expand_custom_ops, name_of
from pelton.aot.lowering.custom.operator import CustomOp, add
from pelton.aot.lowering.custom.shapes import ShapePattern

SCALED = torch._C.parse_schema("testing::scaled(Tensor x, int n) -> Tensor")
BODY = "%0 = arith.addf %x, %x : $x\nreturn %0 : $result"
TENSOR = "!torch.vtensor<[2,?],f32>"


@pytest.fixture(autouse=True)
def _own_table(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(operator, "_REGISTERED", {})
    yield


def module(calls: str, arguments: str = "") -> Operation:
    context = Context()
    context.load_all_available_dialects()
    text = f"func.func @main(%x: {TENSOR}{arguments}) {{\n{calls}\nreturn }}"
    return Module.parse(text, context).operation


def call(number: int, n: int = 3, name: str = "testing.scaled") -> str:
    return f"""
        %n{number} = torch.constant.int {n}
        %r{number} = torch.operator "torch.{name}"(%x, %n{number})
          : ({TENSOR}, !torch.int) -> {TENSOR}
        %u{number} = torch.aten.relu %r{number} : {TENSOR} -> {TENSOR}"""


def bodies(expanded: Operation) -> list[str]:
    functions = operations_within(expanded, "func.func")
    return [f.attributes["sym_name"].value for f in functions if CUSTOM_OP in f.attributes]


def test_an_operator_becomes_a_call_of_its_body() -> None:
    add(CustomOp("testing::scaled", SCALED, BODY, ShapePattern.parse("m n -> m n"), None))
    expanded = module(call(0))
    expand_custom_ops(expanded)
    assert expanded.verify()
    assert operations_within(expanded, "torch.operator") == []
    (found,) = operations_within(expanded, "func.call")
    assert found.attributes["callee"].value == "testing.scaled"
    assert [str(operand.type) for operand in found.operands] == ["tensor<?x?xf32>"]
    assert bodies(expanded) == ["testing.scaled"]
    (use,) = operations_within(expanded, "torch.aten.relu")
    assert use.operands[0].owner.name == "torch_c.from_builtin_tensor"
    assert str(use.operands[0].type) == TENSOR


def test_one_body_serves_equal_calls_and_each_constant_has_its_own() -> None:
    add(CustomOp("testing::scaled", SCALED, BODY, ShapePattern.parse("m n -> m n"), None))
    expanded = module(call(0) + call(1) + call(2, n=4))
    expand_custom_ops(expanded)
    callees = [op.attributes["callee"].value for op in operations_within(expanded, "func.call")]
    assert callees == ["testing.scaled", "testing.scaled", "testing.scaled$1"]
    assert sorted(bodies(expanded)) == ["testing.scaled", "testing.scaled$1"]


def test_a_number_that_only_a_run_knows_is_an_operand() -> None:
    add(CustomOp("testing::scaled", SCALED, BODY, ShapePattern.parse("m n -> m n"), None))
    text = (
        f'%r = torch.operator "torch.testing.scaled"(%x, %n) : ({TENSOR}, !torch.int) -> {TENSOR}'
    )
    expanded = module(text, ", %n: !torch.int")
    expand_custom_ops(expanded)
    (found,) = operations_within(expanded, "func.call")
    assert [str(operand.type) for operand in found.operands] == ["tensor<?x?xf32>", "i64"]


def test_a_list_that_only_a_run_knows_is_refused() -> None:
    schema = torch._C.parse_schema("testing::listed(Tensor x, int[] n) -> Tensor")
    add(CustomOp("testing::listed", schema, BODY, None, None))
    text = f"""%r = torch.operator "torch.testing.listed"(%x, %n)
        : ({TENSOR}, !torch.list<int>) -> {TENSOR}"""
    with pytest.raises(aot.ExportError, match="argument 'n' is known only when the program runs"):
        expand_custom_ops(module(text, ", %n: !torch.list<int>"))


def test_static_sizes_of_results_are_checked_without_stated_shapes() -> None:
    add(CustomOp("testing::scaled", SCALED, BODY, None, None))
    expanded = module(call(0))
    expand_custom_ops(expanded)
    (check,) = operations_within(expanded, "util.status.check_ok")
    message = check.attributes["message"].value
    assert message == "custom operator testing::scaled: size 0 of what its body returned is not 2"


def test_tensors_of_unknown_rank_are_refused() -> None:
    add(CustomOp("testing::scaled", SCALED, BODY, None, None))
    text = """%n = torch.constant.int 1
        %r = torch.operator "torch.testing.scaled"(%y, %n)
          : (!torch.vtensor, !torch.int) -> !torch.vtensor"""
    with pytest.raises(aot.ExportError, match=r"!torch.vtensor has no builtin form"):
        expand_custom_ops(module(text, ", %y: !torch.vtensor"))


def test_all_operators_without_a_body_are_named() -> None:
    text = call(0) + call(1, name="testing.other")
    with pytest.raises(aot.UnsupportedOpError, match="custom operators without a body") as caught:
        expand_custom_ops(module(text))
    assert set(caught.value.operators) == {"testing.scaled", "testing.other"}


def test_unknown_operators_stay_where_asked_and_those_of_iree_always() -> None:
    unknown = module(call(0))
    expand_custom_ops(unknown, refuse_unknown=False)
    assert len(operations_within(unknown, "torch.operator")) == 1
    onnx = module(call(0, name="onnx.Relu"))
    expand_custom_ops(onnx)
    (kept,) = operations_within(onnx, "torch.operator")
    assert name_of(kept) == "onnx.Relu"
