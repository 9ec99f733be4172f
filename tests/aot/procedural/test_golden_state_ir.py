"""The MLIR of procedures: globals, calls and control flow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot
from tests.programs import check_ir

Tensor = aot.AbstractTensor
INDEX, I64, BOOL = aot.AbstractIndex, aot.AbstractI64, aot.AbstractBool
NET = nn.Linear(4, 3).requires_grad_(False)


def procedure(run: Callable[..., Any], **members: Any) -> aot.ExportOutput:
    """Export a class with one procedure and the members given."""
    return aot.export(type("Module", (aot.CompiledModule,), {**members, "run": run}))


# Globals


def test_globals_are_loaded_and_stored() -> None:
    def run(self, n=I64):
        self.table = self.table + 1
        self.count += n
        return self.table, self.count

    check_ir(
        procedure(
            run,
            table=aot.export_global(torch.ones(4), mutable=True),
            count=aot.export_global(3, mutable=True),
        ),
        """
        CHECK: func.func @run(%arg0: i64) -> (tensor<4xf32>, i64)
        CHECK-NEXT: %[[OLD:.*]] = util.global.load @_table.global : tensor<4xf32>
        CHECK: call @add
        CHECK: %[[NEW:.*]] = torch_c.to_builtin_tensor
        CHECK-NEXT: util.global.store %[[NEW]], @_table.global : tensor<4xf32>
        CHECK: %[[COUNT:.*]] = util.global.load @_count.global : i64
        CHECK: %[[MORE:.*]] = arith.addi %[[COUNT]], %arg0 : i64
        CHECK: util.global.store %[[MORE]], @_count.global : i64
        """,
    )


@pytest.mark.parametrize("source", ["an argument", "another global"])
def test_what_may_be_the_memory_of_another_is_stored_as_a_copy(source: str) -> None:
    def run(self, x=Tensor(4)):
        self.table = x if source == "an argument" else self.other

    check_ir(
        procedure(
            run,
            table=aot.export_global(torch.ones(4), mutable=True),
            other=aot.export_global(torch.zeros(4), mutable=True),
        ),
        """
        CHECK: func.func @run
        CHECK: %[[HIDDEN:.*]] = util.optimization_barrier %true : i1
        CHECK-NEXT: %[[CHOICE:.*]] = flow.tensor.splat %[[HIDDEN]] : tensor<4xi1>
        CHECK-NEXT: %[[OTHER:.*]] = flow.tensor.empty : tensor<4xf32>
        CHECK-NEXT: %[[COPY:.*]] = arith.select %[[CHOICE]], %{{.*}}, %[[OTHER]]
        CHECK-NEXT: util.global.store %[[COPY]], @_table.global
        """,
    )


def test_bools_are_bytes_in_globals() -> None:
    def run(self, x=Tensor(2, dtype=torch.bool)):
        self.flags = x
        return self.flags

    check_ir(
        procedure(run, flags=aot.export_global(torch.tensor([True, False]), mutable=True)),
        """
        CHECK: func.func @run(%arg0: tensor<2xi1>) -> tensor<2xi1>
        CHECK: %[[BYTES:.*]] = arith.extui %{{.*}} : tensor<2xi1> to tensor<2xi8>
        CHECK: util.global.store %[[BYTES]], @_flags.global : tensor<2xi8>
        CHECK: %[[LOADED:.*]] = util.global.load @_flags.global : tensor<2xi8>
        CHECK: %[[BOOLS:.*]] = arith.cmpi ne, %[[LOADED]], %{{.*}} : tensor<2xi8>
        CHECK: return %[[BOOLS]] : tensor<2xi1>
        """,
    )


def test_a_part_of_a_global_is_updated_in_place() -> None:
    def run(self, i=INDEX):
        self.table[i] = 2

    check_ir(
        procedure(run, table=aot.export_global(torch.ones(4), mutable=True)),
        """
        CHECK: "run(): index beyond the end of dimension 0 of float32[4]
        CHECK: %[[NUMBER:.*]] = flow.tensor.splat %{{.*}} : tensor<1xf32>
        CHECK: %[[OLD:.*]] = util.global.load @_table.global : tensor<4xf32>
        CHECK: %[[NEW:.*]] = flow.tensor.update %[[NUMBER]], %[[OLD]][
        CHECK: util.global.store %[[NEW]], @_table.global : tensor<4xf32>
        """,
    )


# Calls


def test_a_jittable_is_one_function_for_each_signature() -> None:
    class Calls(aot.CompiledModule):
        def run(self, x=Tensor(2, 4)):
            return self.step(x, 2.0), self.step(x, scale=2.0), self.step(x, 3.0)

        @aot.jittable
        def step(x, scale):
            return x * scale

    check_ir(
        aot.export(Calls),
        """
        CHECK: call @step(%{{.*}}) : (!torch.vtensor<[2,4],f32>) -> !torch.vtensor<[2,4],f32>
        CHECK: call @step(%
        CHECK: call @step$1(%
        CHECK: func.func private @step(%arg0: !torch.vtensor<[2,4],f32>)
        CHECK: torch.constant.float 2.000000e+00
        CHECK: func.func private @step$1(
        CHECK: torch.constant.float 3.000000e+00
        """,
    )


def test_globals_given_to_a_jittable_are_loaded_and_passed() -> None:
    class Calls(aot.CompiledModule):
        params = aot.export_parameters(NET)

        def run(self, x=Tensor(2, 4)):
            return self.apply(x, self.params)

        @aot.jittable
        def apply(x, params):
            return torch.func.functional_call(NET, params, (x,))

    check_ir(
        aot.export(Calls),
        """
        CHECK: %[[W:.*]] = util.global.load @_params.weight : tensor<3x4xf32>
        CHECK: %[[WEIGHT:.*]] = torch_c.from_builtin_tensor %[[W]]
        CHECK: %[[B:.*]] = util.global.load @_params.bias
        CHECK: %[[BIAS:.*]] = torch_c.from_builtin_tensor %[[B]]
        CHECK: call @apply(%{{.*}}, %[[WEIGHT]], %[[BIAS]])
        CHECK: func.func private @apply(%arg0: {{.*}}, %arg1: {{.*}}, %arg2:
        CHECK-NEXT: torch.aten.linear %arg0, %arg1, %arg2
        """,
    )


def test_a_number_given_to_a_jittable_is_a_checked_torch_int() -> None:
    class Calls(aot.CompiledModule):
        def run(self, x=Tensor(4), n=I64):
            return self.first(x, n)

        @aot.jittable
        def first(x, n):
            return x[:n]

    check_ir(
        aot.export(Calls),
        """
        CHECK: func.func @run(%arg0: tensor<4xf32>, %arg1: i64) -> tensor<?xf32>
        CHECK: arith.cmpi sge, %arg1
        CHECK: util.status.check_ok
        CHECK: %[[N:.*]] = torch_c.from_i64 %arg1
        CHECK: call @first(%{{.*}}, %[[N]]) : (!torch.vtensor<[4],f32>, !torch.int)
        """,
    )


def test_an_argument_changed_in_place_is_a_result() -> None:
    class Calls(aot.CompiledModule):
        table = aot.export_global(torch.ones(4, 2), mutable=True)

        def run(self, x=Tensor(2)):
            self.put(self.table, x)

        @aot.jittable
        def put(table, x):
            table[1] = x

    check_ir(
        aot.export(Calls),
        """
        CHECK: util.global.load @_table.global
        CHECK: %[[NEW:.*]] = call @put(
        CHECK: %[[STORED:.*]] = torch_c.to_builtin_tensor %[[NEW]]
        CHECK: util.global.store %{{.*}}, @_table.global
        """,
    )


def test_a_procedure_is_called_by_name_and_with_other_constants_as_a_copy() -> None:
    class Calls(aot.CompiledModule):
        def run(self, x=Tensor(2, 4)):
            return self.scaled(x), self.scaled(x, factor=4)

        def scaled(self, x=Tensor(2, 4), factor=3):
            return x * factor

    check_ir(
        aot.export(Calls),
        """
        CHECK: func.func @run(
        CHECK: call @scaled(%arg0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
        CHECK: call @scaled$1(%arg0) : (tensor<2x4xf32>) -> tensor<2x4xf32>
        CHECK: func.func @scaled(
        CHECK: func.func private @scaled$1(
        """,
    )


def test_a_module_in_a_procedure_is_a_function_over_its_globals() -> None:
    check_ir(
        procedure(lambda self, x=Tensor(2, 4): self.net(x), net=NET),
        """
        CHECK: func.func @run(%arg0: tensor<2x4xf32>) -> tensor<2x3xf32>
        CHECK: call @
        CHECK: func.func private @
        CHECK: util.global.load @{{.*}}weight
        CHECK: torch.aten.linear
        """,
    )


# Control flow


def test_a_branch_is_an_scf_if() -> None:
    def run(self, p=BOOL, x=Tensor(4)):
        return aot.cond(p, lambda x: (x + 1, 1), lambda x: (x, 2), x)

    check_ir(
        procedure(run),
        """
        CHECK: %[[IF:.*]]:2 = scf.if %arg0 -> (tensor<4xf32>, i64) {
        CHECK: func.call @add
        CHECK: scf.yield %{{.*}}, %c1_i64 : tensor<4xf32>, i64
        CHECK-NEXT: } else {
        CHECK: scf.yield %arg1, %c2_i64 : tensor<4xf32>, i64
        CHECK: return %[[IF]]#0, %[[IF]]#1
        """,
    )


def test_a_counted_loop_is_an_scf_for() -> None:
    def run(self, n=INDEX, x=Tensor(4)):
        return aot.for_loop(n, lambda i, c: (c[0] * 2, c[1] + i), (x, 0))

    check_ir(
        procedure(run),
        """
        CHECK: %[[FOR:.*]]:2 = scf.for %[[I:.*]] = %c0 to %arg0 step %c1
        CHECK-SAME: iter_args(%[[X:.*]] = %arg1, %[[SUM:.*]] = %c0_i64) -> (tensor<4xf32>, i64)
        CHECK: torch_c.from_builtin_tensor %[[X]]
        CHECK: %[[WIDE:.*]] = arith.index_cast %[[I]] : index to i64
        CHECK: %[[MORE:.*]] = arith.addi %[[SUM]], %[[WIDE]] : i64
        CHECK: scf.yield %{{.*}}, %[[MORE]]
        CHECK: return %[[FOR]]#0, %[[FOR]]#1
        """,
    )


def test_a_loop_with_a_condition_is_an_scf_while() -> None:
    def run(self, x=Tensor(4), n=I64):
        return aot.while_loop(lambda c: c[1] < 9, lambda c: (c[0] * 2, c[1] + 1), (x, n))

    check_ir(
        procedure(run),
        """
        CHECK: scf.while (%[[X:.*]] = %arg0, %[[N:.*]] = %arg1) : (tensor<4xf32>, i64) ->
        CHECK: %[[LESS:.*]] = arith.cmpi slt, %[[N]], %{{.*}} : i64
        CHECK: scf.condition(%[[LESS]]) %[[X]], %[[N]] : tensor<4xf32>, i64
        CHECK: } do {
        CHECK: ^bb0(%[[Y:.*]]: tensor<4xf32>, %[[M:.*]]: i64):
        CHECK: arith.addi %[[M]], %c1_i64 : i64
        CHECK: scf.yield
        """,
    )


class Stateful(aot.CompiledModule):
    table = aot.export_global(torch.ones(4), mutable=True)

    def branch(self, p=BOOL):
        def then():
            self.table = self.table + 1
            return 1

        return aot.cond(p, then, lambda: 2)

    def counted(self, n=INDEX):
        def body(i, carry):
            self.table = self.table * 2
            return carry + 1

        return aot.for_loop(n, body, 0)

    def conditional(self, n=I64):
        def body(carry):
            self.table = self.table * 2
            return carry + 1

        return aot.while_loop(lambda carry: carry < n, body, 0)


def test_branches_over_globals_are_blocks() -> None:
    check_ir(
        aot.export(Stateful),
        """
        CHECK: func.func @branch(%arg0: i1) -> i64
        CHECK-NOT: scf.
        CHECK: cf.cond_br %arg0, ^bb1, ^bb2
        CHECK: ^bb1:
        CHECK: util.global.store %{{.*}}, @_table.global
        CHECK: cf.br ^bb3(%c1_i64 : i64)
        CHECK: ^bb2:
        CHECK: cf.br ^bb3(%c2_i64 : i64)
        CHECK: ^bb3(%[[RESULT:.*]]: i64):
        CHECK: return %[[RESULT]] : i64
        """,
    )


def test_loops_over_globals_are_blocks() -> None:
    check_ir(
        aot.export(Stateful),
        """
        CHECK: func.func @counted(%arg0: index) -> i64
        CHECK: cf.br ^bb1(%c0, %c0_i64 : index, i64)
        CHECK: ^bb1(%[[I:.*]]: index, %[[CARRY:.*]]: i64):
        CHECK: %[[LESS:.*]] = arith.cmpi slt, %[[I]], %arg0 : index
        CHECK: cf.cond_br %[[LESS]], ^bb2, ^bb3
        CHECK: util.global.store %{{.*}}, @_table.global
        CHECK: cf.br ^bb1(%{{.*}}, %{{.*}} : index, i64)
        CHECK: return %[[CARRY]] : i64
        CHECK: func.func @conditional(%arg0: i64) -> i64
        CHECK: cf.br ^bb1(%c0_i64 : i64)
        CHECK: arith.cmpi slt, %{{.*}}, %arg0 : i64
        CHECK: cf.cond_br %{{.*}}, ^bb2(%{{.*}} : i64), ^bb3
        """,
    )
