"""Functions under construction: where operations go, whose line they have, and the return."""

from __future__ import annotations

import pytest
from iree.compiler.ir import F32Type, InsertionPoint, Location, Operation

from pelton.aot.procedural.module.function_builder import FunctionBuilder
from tests.aot.procedural.traces import new_builder


def new_function(*types: str) -> FunctionBuilder:
    module = new_builder()
    with module.context, Location.unknown():
        _, op = module.create_func_op("f", [F32Type.get() for _ in types], True)
    return FunctionBuilder(module_builder=module, func_op=op)


def test_it_starts_in_its_entry_block_without_a_return() -> None:
    function = new_function()
    assert function.return_types is None
    assert function.ip.block == function.func_op.entry_block
    assert function.context == function.module_builder.context


def test_operations_are_emitted_in_order_at_the_users_line() -> None:
    function = new_function()
    with function.emitting():
        Operation.create("util.first")
    with function.emitting():
        second = Operation.create("util.second")
    names = [op.operation.name for op in function.func_op.entry_block.operations]
    assert names == ["util.first", "util.second"]
    line = test_operations_are_emitted_in_order_at_the_users_line.__code__.co_firstlineno + 4
    assert str(second.location) == f'loc("{__file__}":{line}:1)'


def test_another_insertion_point_is_kept() -> None:
    function = new_function()
    with function.emitting():
        Operation.create("util.last")
    function.ip = InsertionPoint.at_block_begin(function.func_op.entry_block)
    with function.emitting():
        Operation.create("util.first")
    names = [op.operation.name for op in function.func_op.entry_block.operations]
    assert names == ["util.first", "util.last"]


def test_an_error_leaves_no_context_behind() -> None:
    function = new_function()

    def fails() -> None:
        with function.emitting():
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fails()
    with pytest.raises((ValueError, RuntimeError)):
        InsertionPoint.current  # noqa: B018


@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_return_sets_the_type_of_the_function(count: int) -> None:
    function = new_function("f32")
    (argument,) = function.func_op.arguments
    function.emit_return(*[argument] * count)
    assert list(function.return_types or []) == [argument.type] * count
    results = ", ".join(["f32"] * count)
    expected = f"(f32) -> {results if count == 1 else f'({results})'}"
    assert str(function.func_op.type) == expected
    assert function.func_op.operation.verify()
