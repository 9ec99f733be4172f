"""Operations emitted beside existing ones: their place, types and values."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from iree.compiler.ir import Context, Module, Operation, Type, Value

from pelton.aot.ir.module import operations_within
from pelton.aot.raising.fx import open_source, raise_function
from pelton.aot.targets.iree.faults.emission import Emitter, number_of, tensor_type, with_element

CONTEXT = Context()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!torch.vtensor<[2,?],f32>", ([2, None], "f32")),
        ("!torch.vtensor<[],si64>", ([], "si64")),
        ("!torch.vtensor<[0],i1>", ([0], "i1")), ("tensor<2xf32>", ([], "")),
        ("!torch.int", ([], "")), ("!torch.list<vtensor<[2],f32>>", ([], "")),
    ],
)  # fmt: skip
def test_only_tensors_of_torch_have_sizes_and_elements(
    text: str, expected: tuple[list[int | None], str]
) -> None:
    assert tensor_type(Type.parse(text, CONTEXT)) == expected


@pytest.mark.parametrize("sizes", ["[2,?]", "[]", "[0,1]"])
def test_other_elements_keep_the_sizes(sizes: str) -> None:
    given = Type.parse(f"!torch.vtensor<{sizes},f32>", CONTEXT)
    assert with_element(given, "i1") == f"!torch.vtensor<{sizes},i1>"


MODULE = """
func.func @main(%x: !torch.vtensor<[2],f32>, %y: !torch.vtensor<[2],f32>)
    -> !torch.vtensor<[2],f32> {
  %r = torch.aten.relu %x : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>
  %s = torch.aten.neg %r : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>
  return %s : !torch.vtensor<[2],f32>
}
"""


def emitted(make: Callable[[Emitter, Value, Value], Value]) -> list[float]:
    """Return what a function gives for [-1, 2] and [10, 20] when an emitted value is its result."""
    module = Module.parse(MODULE, Context()).operation
    (relu,) = operations_within(module, "torch.aten.relu")
    (ret,) = operations_within(module, "func.return")
    (block,) = module.regions[0].blocks[0].operations[0].regions[0].blocks
    ret.operands[0] = make(Emitter(relu, after=True), *block.arguments)
    module.verify()
    graph = raise_function(open_source(module), "main").graph_module
    (result,) = graph(torch.tensor([-1.0, 2.0]), torch.tensor([10.0, 20.0]))
    return [float(value) for value in result]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda emit, x, y: emit.sum(x, y), [9, 22]),
        (lambda emit, x, y: emit.difference(x, y), [-11, -18]),
        (lambda emit, x, y: emit.product(x, y), [-10, 40]),
        (lambda emit, x, y: emit.scaled(x, 0.5), [-0.5, 1]),
        (lambda emit, x, y: emit.shifted(x, 0.25), [-0.75, 2.25]),
        (lambda emit, x, y: emit.like("aten.neg", x), [1, -2]),
        (lambda emit, x, y: emit.tensor("aten.abs", [2], x), [1, 2]),
        (lambda emit, x, y: emit.converted(x, "f32"), [-1, 2]),
        (lambda emit, x, y: emit.converted(emit.converted(x, "si32"), "f32"), [-1, 2]),
        (lambda emit, x, y: emit.converted(emit.converted(x, "bf16"), "f32"), [-1, 2]),
        (lambda emit, x, y: emit.like("aten.flip", x, emit.numbers(0)), [2, -1]),
    ],
    ids=[
        "sum", "difference", "product", "scaled", "shifted", "like", "tensor", "same", "integers",
        "bfloat16", "numbers",
    ],
)  # fmt: skip
def test_emitted_operations_compute(
    make: Callable[[Emitter, Value, Value], Value], expected: list[float]
) -> None:
    assert emitted(make) == expected


def test_a_tensor_that_has_the_element_type_is_not_converted() -> None:
    made: list[bool] = []

    def make(emit: Emitter, x: Value, y: Value) -> Value:
        made.append(emit.converted(x, "f32") == x)
        return x

    emitted(make)
    assert made == [True]


def parsed() -> Operation:
    return Module.parse(MODULE, Context()).operation


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (False, ["torch.aten.abs", "torch.aten.exp", "torch.aten.relu", "torch.aten.neg"]),
        (True, ["torch.aten.relu", "torch.aten.abs", "torch.aten.exp", "torch.aten.neg"]),
    ],
    ids=["before", "after"],
)
def test_operations_come_in_order_beside_the_one_they_are_for(
    after: bool, expected: list[str]
) -> None:
    module = parsed()
    (relu,) = operations_within(module, "torch.aten.relu")
    emit = Emitter(relu, after=after)
    emit.like("aten.exp", emit.like("aten.abs", relu.operands[0]))
    operations = module.regions[0].blocks[0].operations[0].regions[0].blocks[0].operations
    assert [op.name for op in operations][:-1] == expected
    assert {str(op.location) for op in [*operations][:3]} == {str(relu.location)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch.constant.int -3", -3), ("torch.constant.float 0.5", 0.5),
        ("torch.constant.bool true", 1), ("torch.constant.none", None),
        ('torch.constant.str "3"', None),
    ],
)  # fmt: skip
def test_the_number_of_a_constant(text: str, expected: float | None) -> None:
    module = Module.parse(f"func.func @main() {{ %0 = {text} return }}", Context())
    constant = module.body.operations[0].regions[0].blocks[0].operations[0]
    assert number_of(constant.result) == expected


def test_an_argument_is_no_number() -> None:
    module = parsed()
    block = module.regions[0].blocks[0].operations[0].regions[0].blocks[0]
    assert number_of(block.arguments[0]) is None
