"""Branches and loops of torch as regions of the torch dialect."""

from __future__ import annotations

import torch
from torch import Tensor
from torch._higher_order_ops.map import map as torch_map

from pelton import aot
from tests.programs import check_ir

ROWS = aot.NamedDimension("rows", 2, 4, 16)
X, W = aot.InputInfo((ROWS, 4), torch.float32), aot.InputInfo((4,), torch.float32)


def test_cond_is_an_if_whose_branches_see_the_values_around_them() -> None:
    def program(x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cond(
            x.sum() > 0, lambda x: (x + w, x.sum()), lambda x: (x - 1, x.mean()), (x,)
        )

    check_ir(
        aot.export(program, args=(X, W)),
        """
        CHECK: func.func @main(
        CHECK: %[[POSITIVE:.*]] = torch.aten.gt.Scalar {{.*}} -> !torch.vtensor<[],i1>
        CHECK: %[[BOOL:.*]] = torch.aten.Bool.Tensor %[[POSITIVE]] : !torch.vtensor<[],i1>
        CHECK: %[[IF:.*]]:2 = torch.prim.If %[[BOOL]] -> (!torch.vtensor<[?,4],f32>,
        CHECK-SAME: !torch.vtensor<[],f32>) {
        CHECK: %[[SUM:.*]] = torch.aten.add.Tensor %arg0, %arg1
        CHECK: torch.prim.If.yield %[[SUM]], %
        CHECK: } else {
        CHECK: torch.aten.sub.Scalar %arg0
        CHECK: torch.prim.If.yield %
        CHECK: return %[[IF]]#0, %[[IF]]#1
        CHECK-NOT: func.func
        """,
    )


def test_sizes_of_a_branch_are_stated_behind_it() -> None:
    check_ir(
        aot.export(
            lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)), args=(X,)
        ),
        """
        CHECK: %[[N:.*]] = torch.symbolic_int
        CHECK: %[[IF:.*]] = torch.prim.If
        CHECK-NOT: torch.bind_symbolic_shape
        CHECK: }
        CHECK: torch.bind_symbolic_shape %[[IF]], [%[[N]]], affine_map<()[s0] -> (s0, 4)>
        """,
    )


def test_cond_on_a_size_takes_a_bool_without_a_tensor() -> None:
    check_ir(
        aot.export(
            lambda x: torch.cond(x.shape[0] > 4, lambda x: x + 1, lambda x: x - 1, (x,)), args=(X,)
        ),
        """
        CHECK: %[[SIZE:.*]] = torch.aten.size.int %arg0, %int0
        CHECK: %[[MORE:.*]] = torch.aten.gt.int %[[SIZE]], %int4 : !torch.int, !torch.int
        CHECK-NEXT: torch.prim.If %[[MORE]] -> (!torch.vtensor<[?,4],f32>)
        """,
    )


def test_nested_branches_are_regions_within_regions() -> None:
    def inner(x: Tensor) -> Tensor:
        return torch.cond(x.amax() > 3, lambda x: x * 3, lambda x: x * 5, (x,))

    check_ir(
        aot.export(lambda x: torch.cond(x.sum() > 0, inner, lambda x: x - 1, (x,)), args=(X,)),
        """
        CHECK: torch.prim.If
        CHECK: torch.aten.amax
        CHECK: %[[INNER:.*]] = torch.prim.If
        CHECK: torch.aten.mul.Scalar %arg0, %int3
        CHECK: } else {
        CHECK: torch.aten.mul.Scalar %arg0, %int5
        CHECK: torch.prim.If.yield %[[INNER]]
        CHECK: } else {
        CHECK: torch.aten.sub.Scalar %arg0
        """,
    )


def test_map_is_a_loop_that_writes_rows_into_zeros() -> None:
    check_ir(
        aot.export(lambda x: torch_map(lambda row, total: row + total, x, x.sum(0)), args=(X,)),
        """
        CHECK: %[[TOTAL:.*]] = torch.aten.sum.dim_IntList
        CHECK: %[[COUNT:.*]] = torch.aten.size.int %arg0, %int0
        CHECK: %[[ZEROS:.*]] = torch.aten.zeros {{.*}} -> !torch.vtensor<[?,4],f32>
        CHECK: torch.prim.Loop %[[COUNT]], %true, init(%[[ZEROS]]) {
        CHECK-NEXT: ^bb0(%[[PLACE:.*]]: !torch.int, %[[ROWS:.*]]: !torch.vtensor<[?,4],f32>):
        CHECK: %[[ROW:.*]] = torch.aten.select.int %arg0, %{{.*}}, %[[PLACE]]
        CHECK: %[[SUM:.*]] = torch.aten.add.Tensor %[[ROW]], %[[TOTAL]]
        CHECK: torch.aten.select_scatter %[[ROWS]], %[[SUM]], %{{.*}}, %[[PLACE]]
        CHECK: torch.prim.Loop.condition %true{{.*}}, iter(
        """,
    )


class Choice(torch.nn.Module):
    """A layer, or nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.layer(x), lambda x: x.clone(), (x,))


def test_weights_of_a_branch_are_loaded_where_it_reads_them() -> None:
    check_ir(
        aot.export(Choice(), args=(X,)),
        """
        CHECK: util.global.load @__auto.layer.weight
        CHECK: torch.prim.If
        CHECK: torch.aten.linear %arg0
        CHECK: } else {
        CHECK: torch.aten.clone %arg0
        """,
    )
