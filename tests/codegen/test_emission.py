"""IR builders: constants, sizes and filled tensors."""

from __future__ import annotations

import pytest
from iree.compiler.ir import F32Type, InsertionPoint, Location, RankedTensorType

from pelton.codegen.emission import DYNAMIC, create, filled, index, size_of
from pelton.codegen.linalg import operations_in
from tests.codegen.ir import parsed

FUNCTION = "func.func @main(%x: tensor<?x3xf32>, %value: f32) { return }"


def test_sizes_and_constants_are_of_type_index() -> None:
    with parsed(FUNCTION) as module_op:
        (end,) = operations_in(module_op, "func.return")
        tensor = end.parent.regions[0].blocks[0].arguments[0]
        with InsertionPoint(end), Location.unknown():
            rows = size_of(tensor, 0)
            create("arith.addi", rows.type, [rows, index(-4)])
        assert module_op.verify()
        text = str(module_op)
    assert "tensor.dim %arg0, %c0" in text
    assert "%c-4 = arith.constant -4 : index" in text
    assert "arith.addi %dim, %c-4 : index" in text


@pytest.mark.parametrize("shape", [[], [2, 3], [DYNAMIC, 3, DYNAMIC]], ids=str)
def test_filled_tensor_has_the_type_and_the_dynamic_sizes(shape: list[int]) -> None:
    with parsed(FUNCTION) as module_op:
        (end,) = operations_in(module_op, "func.return")
        _, value = end.parent.regions[0].blocks[0].arguments
        with InsertionPoint(end), Location.unknown():
            kind = RankedTensorType.get(shape, F32Type.get())
            tensor = filled(value, kind, [index(size + 5) for size in range(shape.count(DYNAMIC))])
            assert tensor.type == kind
        assert module_op.verify()
        (fill,) = operations_in(module_op, "linalg.fill")
        (empty,) = operations_in(module_op, "tensor.empty")
        assert fill.operands[0] == value and len(empty.operands) == shape.count(DYNAMIC)
