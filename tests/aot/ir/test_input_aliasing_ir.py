"""Which entry points state that compiled code may write to the memory of their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot
from pelton.aot.custom_ops import custom_op
from tests.programs import check_ir

X, PLACES = torch.ones(4, 4), torch.tensor([1, 3])
WRITES = r"CHECK: func.func @main({{.*}}\22overwrites_inputs\22:true"
READS = r"CHECK: func.func @main({{.*}}\22overwrites_inputs\22:false"

WRITERS: dict[str, Callable[..., Any]] = {
    "scatter": lambda x, i: x.index_put((i,), torch.ones(2, 4)),
    "index_copy": lambda x, i: x.index_copy(0, i, torch.ones(2, 4)),
    "slice_scatter": lambda x, i: x.slice_scatter(torch.ones(1, 4), 0, 1, 2),
    "cumsum": lambda x, i: x.cumsum(0),
    "in a branch": lambda x, i: torch.cond(
        x.sum() > 0, lambda x: x.index_fill(0, i, 1.0), lambda x: x + 1, (x,)
    ),
}
READERS: dict[str, Callable[..., Any]] = {
    "elementwise": lambda x, i: (x + 1).relu() * x.sigmoid(),
    "product": lambda x, i: x @ x.transpose(0, 1),
    "reduction": lambda x, i: x.softmax(1).sum(0),
    "movement": lambda x, i: torch.cat([x.permute(1, 0).reshape(2, 8), x.flatten()[None, :8]]),
    "gather": lambda x, i: x[i],
    "branch": lambda x, i: torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x + 1, (x,)),
    "nothing": lambda x, i: x,
}


@pytest.mark.parametrize("name", WRITERS)
def test_programs_that_update_a_tensor_in_place(name: str) -> None:
    check_ir(aot.export(WRITERS[name], args=(X, PLACES)), WRITES)


@pytest.mark.parametrize("name", READERS)
def test_programs_that_only_read(name: str) -> None:
    check_ir(aot.export(READERS[name], args=(X, PLACES)), READS)


def test_a_program_without_inputs_cannot_overwrite_any() -> None:
    check_ir(aot.export(lambda: torch.arange(4).flip(0).sort()[0]), READS)


class Count(nn.Module):
    """A buffer that each call changes."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x.sum(0))
        return x * self.total


def test_programs_that_store_state_get_copies() -> None:
    check_ir(aot.export(Count(), args=(X,)), WRITES)


COPIED = custom_op(
    "testing::aliasing_copied(Tensor x) -> Tensor",
    shapes="n m -> n m",
    body="""
        %empty = tensor.empty(${result.sizes}) : $result
        %0 = linalg.generic {
            indexing_maps = [${x.map}, ${result.map}], iterator_types = $iterators
        } ins(%x : $x) outs(%empty : $result) {
        ^bb0(%a: ${x.element}, %out: ${x.element}):
          linalg.yield %a : ${x.element}
        } -> $result
        return %0 : $result
    """,
    eager=torch.clone,
)
INTO_INPUT = custom_op(
    "testing::aliasing_into_input(Tensor x) -> Tensor",
    shapes="n m -> n m",
    body="""
        %0 = linalg.generic {
            indexing_maps = [${result.map}], iterator_types = $iterators
        } outs(%x : $x) {
        ^bb0(%a: ${x.element}):
          %b = arith.addf %a, %a : ${x.element}
          linalg.yield %b : ${x.element}
        } -> $result
        return %0 : $result
    """,
    eager=lambda x: x + x,
)


def test_bodies_of_custom_operators_are_looked_into() -> None:
    check_ir(aot.export(lambda x: COPIED(x), args=(X,)), READS)
    check_ir(aot.export(lambda x: INTO_INPUT(x), args=(X,)), WRITES)


def test_each_entry_point_of_a_module_is_judged_alone() -> None:
    class Two(aot.CompiledModule):
        def reads(self, x=aot.AbstractTensor(4)):  # type: ignore[no-untyped-def]
            return self.doubled(x)

        def updates(self, x=aot.AbstractTensor(4), y=aot.AbstractTensor(1)):  # type: ignore[no-untyped-def]
            return aot.IREE.tensor_update(x, y, 1)

        def doubled(self, x=aot.AbstractTensor(4)):  # type: ignore[no-untyped-def]
            return x * 2

    check_ir(
        aot.export(Two),
        r"""
        CHECK: func.func @reads({{.*}}\22overwrites_inputs\22:false
        CHECK: func.func @updates({{.*}}\22overwrites_inputs\22:true
        CHECK: func.func @doubled({{.*}}\22overwrites_inputs\22:false
        """,
    )
