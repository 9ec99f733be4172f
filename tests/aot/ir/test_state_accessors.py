"""Getters and setters of mutable globals."""

from __future__ import annotations

import torch
from torch import nn

from pelton import aot
from tests.programs import check_ir


class State(aot.CompiledModule):
    table = aot.export_global(torch.ones(2, 3), mutable=True)
    flags = aot.export_global(aot.AbstractTensor(2, dtype=torch.bool), mutable=True)
    count = aot.export_global(3, mutable=True)
    rate = aot.export_global(0.5, mutable=True)
    on = aot.export_global(aot.AbstractBool, mutable=True)
    fixed = aot.export_global(torch.zeros(2))
    tree = aot.export_global_tree({"a": [torch.ones(1)]}, mutable=True)

    def nothing(self) -> None:
        return None


def test_a_tensor_is_read_and_written_as_it_is_stored() -> None:
    check_ir(
        aot.export(State),
        r"""
        CHECK: func.func @pelton.state.get.table() -> tensor<2x3xf32>
        CHECK-SAME: \22results\22:{{\[\[}}\22tensor\22,\22float32\22,[2,3]]]
        CHECK-NEXT: %[[VALUE:.*]] = util.global.load @_table.global : tensor<2x3xf32>
        CHECK-NEXT: return %[[VALUE]] : tensor<2x3xf32>
        CHECK: func.func @pelton.state.set.table(%arg0: tensor<2x3xf32>)
        CHECK-SAME: \22parameters\22:{{\[\[}}\22value\22,\22POSITIONAL_OR_KEYWORD\22,0]]
        CHECK-SAME: \22mutates\22:[\22table\22]
        CHECK-NEXT: util.global.store %arg0, @_table.global : tensor<2x3xf32>
        CHECK-NEXT: return
        """,
    )


def test_bools_are_bytes_whose_signature_says_bool() -> None:
    check_ir(
        aot.export(State),
        r"""
        CHECK: func.func @pelton.state.get.flags() -> tensor<2xi8>
        CHECK-SAME: {{\[\[}}\22tensor\22,\22bool\22,[2]]]
        CHECK: func.func @pelton.state.set.flags(%arg0: tensor<2xi8>)
        CHECK-SAME: {{\[\[}}\22tensor\22,\22bool\22,[2]]]
        """,
    )


def test_numbers_are_scalars() -> None:
    check_ir(
        aot.export(State),
        r"""
        CHECK: func.func @pelton.state.get.count() -> i64
        CHECK-SAME: \22int\22
        CHECK: func.func @pelton.state.set.count(%arg0: i64)
        CHECK: func.func @pelton.state.get.rate() -> f32
        CHECK-SAME: \22float\22
        CHECK: func.func @pelton.state.get.on() -> i1
        CHECK-SAME: \22bool\22
        CHECK: func.func @pelton.state.set.on(%arg0: i1)
        CHECK-NEXT: util.global.store %arg0, @_on.global : i1
        """,
    )


def test_leaves_of_trees_have_their_paths_and_constants_no_accessor() -> None:
    out = aot.export(State)
    check_ir(
        out,
        """
        CHECK: func.func @pelton.state.get.tree.a.0() -> tensor<1xf32>
        CHECK: func.func @pelton.state.set.tree.a.0(%arg0: tensor<1xf32>)
        """,
    )
    assert "pelton.state.get.fixed" not in str(out.mlir_module)


def test_buffers_have_their_keys_and_stand_behind_the_programs() -> None:
    class Inner(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(2))
            self.register_buffer("still", torch.zeros(2))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(1)
            return x + self.count + self.still

    out = aot.export(nn.Sequential(Inner()), args=(torch.ones(2),))
    check_ir(
        out,
        r"""
        CHECK: func.func @main(
        CHECK-SAME: \22mutates\22:[\220.count\22]
        CHECK: func.func @pelton.state.get.0.count() -> tensor<2xf32>
        CHECK: func.func @pelton.state.set.0.count(%arg0: tensor<2xf32>)
        CHECK-NOT: func.func
        """,
    )
