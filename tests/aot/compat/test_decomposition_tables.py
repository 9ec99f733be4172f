"""Contracts of torch's decompositions."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.compat.decomposition_tables import (
    composite_decomposition,
    composite_names,
    decomposable,
    decomposition_table,
    get_decompositions,
    remove_decompositions,
)
from pelton.aot.compat.exported_programs import decompose
from tests.contracts import contract

aten = torch.ops.aten
X = torch.tensor([-1.0, 0.5, 2.0])


@contract("torch._decomp.decomposition_table", breaks="operators that are decomposed as torch does")
def test_table_computes_an_operator_by_others() -> None:
    function = decomposition_table[aten.silu_backward.default]
    torch.testing.assert_close(function(torch.ones(3), X), aten.silu_backward(torch.ones(3), X))


@contract("torch._decomp.get_decompositions", breaks="extend_aot_decompositions(add_ops=...)")
def test_decompositions_of_a_packet_are_those_of_its_overloads() -> None:
    found = get_decompositions([aten.gelu])
    assert aten.gelu.default in found
    torch.testing.assert_close(found[aten.gelu.default](X), torch.nn.functional.gelu(X))


@contract("torch._decomp.remove_decompositions", breaks="extend_aot_decompositions(remove_ops=...)")
def test_decompositions_are_removed_from_a_table_in_place() -> None:
    table = {aten.gelu.default: len, aten.relu.default: len}
    remove_decompositions(table, [aten.gelu])  # type: ignore[arg-type]
    assert list(table) == [aten.relu.default]


@contract(
    "torch._C._dispatch_get_registrations_for_dispatch_key",
    breaks="operators outside the torch dialect that torch implements by others",
)
def test_composite_operators_are_listed_by_qualified_name() -> None:
    names = composite_names()
    assert "aten::square" in names and "aten::relu" not in names
    assert "aten::squeeze_copy.dim" not in names and "aten::moveaxis.int" in names


@contract(
    "OpOverload._can_decompose, torch._export.utils._get_decomp_for_cia",
    breaks="operators outside the torch dialect that torch implements by others",
)
def test_composite_operator_is_computed_by_others() -> None:
    function = composite_decomposition(aten.square.default)
    assert function is not None
    torch.testing.assert_close(function(X), X * X)
    assert composite_decomposition(aten.relu.default) is None


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch's own pytrees
@contract("OpOverload.py_kernels", breaks="upsample_nearest2d, which is wrong as it stands")
def test_decompositions_reach_operators_with_a_kernel_and_a_composite_form() -> None:
    operator = aten.upsample_nearest2d.default

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return operator(x, [4, 4])

    program = torch.export.export(Model(), (torch.ones(1, 1, 2, 2),))
    table = {operator: lambda x, *_: x.repeat(1, 1, 2, 2)}
    assert "upsample" in str(program.run_decompositions(dict(table)).graph), "no longer needed"
    kernels = dict(operator.py_kernels)
    with decomposable(table) as hidden:
        assert list(hidden) == [operator]
    assert "upsample" not in str(decompose(program, table).graph)
    assert operator.py_kernels == kernels
