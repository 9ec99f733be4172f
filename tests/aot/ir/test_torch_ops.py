"""Emitter of operations of the torch dialect."""

from __future__ import annotations

import pytest
from iree.compiler.ir import InsertionPoint, Location, MLIRError, Operation, Value

from pelton.aot.ir.module import new_module, operations_within
from pelton.aot.ir.torch_ops import TorchEmitter


@pytest.fixture
def module() -> Operation:
    return new_module("m")


@pytest.fixture
def emit(module: Operation) -> TorchEmitter:
    module.context.load_all_available_dialects()
    location = Location.file("net.py", 3, 1, module.context)
    return TorchEmitter(InsertionPoint(module.regions[0].blocks[0]), location)


def text(value: Value) -> str:
    return str(value.owner).partition(" = ")[2]


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda e: e.number(-1), "torch.constant.int -1"),
        (lambda e: e.number(2**63 - 1), "torch.constant.int 9223372036854775807"),
        (lambda e: e.real(0.5), "torch.constant.float 5.000000e-01"),
        (lambda e: e.boolean(True), "torch.constant.bool true"),
        (lambda e: e.boolean(False), "torch.constant.bool false"),
        (lambda e: e.none(), "torch.constant.none"),
    ],
)
def test_constants(emit: TorchEmitter, make, expected: str) -> None:
    assert text(make(emit)) == expected


def test_lists_hold_their_values_in_order(emit: TorchEmitter) -> None:
    values = [emit.number(1), emit.number(2)]
    made = emit.integers(values)
    assert str(made.type) == "!torch.list<int>" and [*made.owner.operands] == values
    assert len(emit.integers([]).owner.operands) == 0


def test_operations_follow_one_another_at_the_location(
    emit: TorchEmitter, module: Operation
) -> None:
    one = emit.number(1)
    emit.make("aten.neg.int", one.type, one)
    names = [op.name for op in operations_within(module)][:-1]
    assert names == ["torch.constant.int", "torch.aten.neg.int"]
    assert all('"net.py":3:1' in str(op.location) for op in operations_within(module)[:-1])


def test_a_type_that_cannot_be_parsed_is_refused(emit: TorchEmitter) -> None:
    with pytest.raises(MLIRError):
        emit.make("constant.int", "!torch.nothing<")
