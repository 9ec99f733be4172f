"""Initializers that give mutable globals memory of their own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from pelton import aot
from tests.programs import check_ir


def exported_state(kind: aot.AbstractTensor) -> aot.ExportOutput:
    """Return a module with one mutable global that starts as zeros."""

    class State(aot.CompiledModule):
        value = aot.export_global(kind, mutable=True)

        def nothing(self) -> None:
            return None

    return aot.export(State)


@pytest.mark.parametrize(
    ("name", "word", "element"),
    [
        ("float32", "i32", "f32"),
        ("float64", "i64", "f64"),
        ("int8", "i8", "i8"),
        ("bool", "i8", "i8"),
        ("bfloat16", "i16", "bf16"),
        ("float8_e5m2", "i8", "f8E5M2"),
    ],
)
def test_zeros_are_splats_of_a_zero_that_the_compiler_cannot_see(
    name: str, word: str, element: str
) -> None:
    check_ir(
        exported_state(aot.AbstractTensor(2, 3, dtype=getattr(torch, name))),
        f"""
        CHECK: util.global private mutable @_value.global
        CHECK-NEXT: util.initializer {{
        CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : {word}
        CHECK-NEXT: %[[HIDDEN:.*]] = util.optimization_barrier %[[ZERO]] : {word}
        CHECK-NEXT: %[[WORDS:.*]] = flow.tensor.splat %[[HIDDEN]] : tensor<2x3x{word}>
        CHECK-NEXT: %[[VALUE:.*]] = flow.tensor.bitcast %[[WORDS]] : tensor<2x3x{word}> ->
        CHECK-SAME: tensor<2x3x{element}>
        CHECK-NEXT: util.global.store %[[VALUE]], @_value.global : tensor<2x3x{element}>
        CHECK-NEXT: util.return
        """,
    )


def test_values_and_immutable_zeros_have_no_initializer() -> None:
    class Values(aot.CompiledModule):
        changed = aot.export_global(torch.ones(2), mutable=True)
        zeros = aot.export_global(aot.AbstractTensor(2))
        number = aot.export_global(aot.AbstractI64, mutable=True)

        def nothing(self) -> None:
            return None

    check_ir(
        aot.export(Values),
        """
        CHECK: util.global private @_zeros.global = dense<0.000000e+00>
        CHECK-NOT: util.initializer
        """,
    )


class Counter(nn.Module):
    """A buffer that calls change, and a weight that they read."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(3))
        self.register_buffer("seen", torch.zeros(3, dtype=torch.bool))
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(x)
        self.seen.logical_or_(x > 0)
        return self.count * self.weight


def test_archived_values_of_mutable_globals_are_copied() -> None:
    check_ir(
        aot.export(Counter(), args=(torch.ones(3),), external_parameters=True),
        """
        CHECK: util.global private mutable @__auto.count = #flow.parameter.named<"model"::"count">
        CHECK-NEXT: util.initializer {
        CHECK-NEXT: %[[TRUE:.*]] = arith.constant true
        CHECK-NEXT: %[[HIDDEN:.*]] = util.optimization_barrier %[[TRUE]] : i1
        CHECK-NEXT: %[[CHOICE:.*]] = flow.tensor.splat %[[HIDDEN]] : tensor<3xi1>
        CHECK-NEXT: %[[GIVEN:.*]] = util.global.load @__auto.count : tensor<3xf32>
        CHECK-NEXT: %[[OTHER:.*]] = flow.tensor.empty : tensor<3xf32>
        CHECK-NEXT: %[[OWN:.*]] = arith.select %[[CHOICE]], %[[GIVEN]], %[[OTHER]]
        CHECK-NEXT: util.global.store %[[OWN]], @__auto.count : tensor<3xf32>
        CHECK-NEXT: util.return
        CHECK: util.global private mutable @__auto.seen {pelton.dtype = "bool"} = #flow.parameter
        CHECK-NEXT: util.initializer {
        CHECK: arith.select {{.*}} : tensor<3xi1>, tensor<3xi8>
        """,
    )


def test_values_in_the_module_and_archived_constants_are_not_copied() -> None:
    def is_weight(key: str) -> bool:
        return key == "weight"

    check_ir(
        aot.export(Counter(), args=(torch.ones(3),), external_parameters=is_weight),
        """
        CHECK: util.global private mutable @__auto.count = dense_resource
        CHECK: util.global private @__auto.weight = #flow.parameter.named<"model"::"weight">
        CHECK-NOT: util.initializer
        """,
    )
