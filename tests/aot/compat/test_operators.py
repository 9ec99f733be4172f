"""Contracts of torch's operators: classes, schemas, custom definitions."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.compat.operators import (
    CustomOpDef,
    FunctionSchema,
    HigherOrderOperator,
    OperatorBase,
    OpOverload,
    OpOverloadPacket,
    foreach_operators,
    overload_of,
    parse_schema,
    schema_of,
)
from tests.contracts import contract

aten = torch.ops.aten


def targets_of(function: object, *args: torch.Tensor) -> list[object]:
    class Program(torch.nn.Module):
        def forward(self, *inputs: torch.Tensor) -> object:
            return function(*inputs)  # type: ignore[operator]

    graph = torch.export.export(Program(), args).graph
    return [node.target for node in graph.nodes if node.op == "call_function"]


@contract("torch._ops.OpOverload", breaks="decompositions, rewrites and lowering, by operator")
def test_overload_is_the_target_of_a_call() -> None:
    (target,) = targets_of(torch.relu, torch.ones(2))
    assert isinstance(target, OpOverload)
    assert target is aten.relu.default, "the same overload is the same object, a key of tables"
    assert (target.namespace, str(target)) == ("aten", "aten.relu.default")
    assert target.overloadpacket is aten.relu
    assert aten.view.default.is_view and not target.is_view


@contract("torch._ops.OpOverloadPacket", breaks="extend_aot_decompositions of all overloads")
def test_packet_gives_its_overloads_by_name() -> None:
    assert isinstance(aten.add, OpOverloadPacket)
    assert {"Tensor", "Scalar"} <= set(aten.add.overloads())
    assert aten.add.Tensor is getattr(aten.add, "Tensor")  # noqa: B009 - as the registry does


@contract("torch._ops.HigherOrderOperator", breaks="lowering of cond, while_loop, scan and map")
def test_operator_with_graphs_is_known_by_its_name() -> None:
    def branch(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    found = [t for t in targets_of(branch, torch.ones(2)) if isinstance(t, HigherOrderOperator)]
    assert [(target.name(), str(target)) for target in found] == [("cond", "cond")]


@contract("torch._ops.OperatorBase", breaks="legalisation, which tells operators from functions")
def test_all_operators_have_one_base() -> None:
    cond = torch.ops.higher_order.cond
    assert isinstance(aten.relu.default, OperatorBase) and isinstance(cond, OperatorBase)
    assert not isinstance(torch.relu, OperatorBase)


@contract("OpOverload._schema", breaks="lowering, raising and custom operators, by schema")
def test_schema_states_names_types_and_defaults() -> None:
    schema = schema_of(aten.sum.dim_IntList)
    assert isinstance(schema, FunctionSchema)
    assert (schema.name, schema.overload_name) == ("aten::sum", "dim_IntList")
    first, *_, keepdim, dtype = schema.arguments
    assert (first.name, str(first.type), first.has_default_value()) == ("self", "Tensor", False)
    assert (keepdim.default_value, keepdim.kwarg_only, dtype.kwarg_only) == (False, False, True)
    assert [str(result.type) for result in schema.returns] == ["Tensor"]
    assert not schema.is_mutable and schema_of(aten.add_.Tensor).is_mutable


@contract("torch._C.parse_schema", breaks="aot.custom_ops.custom_op, which checks schemas by it")
def test_schema_is_parsed_or_refused() -> None:
    schema = parse_schema("demo::f(Tensor x, int n=2) -> (Tensor, Tensor)")
    assert [argument.name for argument in schema.arguments] == ["x", "n"]
    assert len(schema.returns) == 2
    with pytest.raises(RuntimeError):
        parse_schema("demo::f(Tensor x -> Tensor")


@contract("CustomOpDef._opoverload", breaks="bodies of operators of torch.library.custom_op")
def test_custom_definition_has_its_overload() -> None:
    @torch.library.custom_op("contracts::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x + x

    assert isinstance(twice, CustomOpDef)
    assert overload_of(twice) is torch.ops.contracts.twice.default
    assert schema_of(overload_of(twice)).name == "contracts::twice"


@contract("torch._foreach_*", breaks="decomposing operators on lists of tensors")
def test_operators_on_lists_are_found_by_name() -> None:
    found = {str(operator): name for name, operator in foreach_operators()}
    assert found["aten._foreach_add.List"] == "add"
    assert found["aten._foreach_copy.default"] == "copy"
    assert not any("out" in name or "_." in name for name in found)
