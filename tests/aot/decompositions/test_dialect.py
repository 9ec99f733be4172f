"""Operators of the torch dialect, and torch's decompositions of the others."""

import pytest
import torch

from pelton.aot.decompositions.dialect import (
    DECOMPOSED_THOUGH_KNOWN,
    is_known,
    mlir_name,
    torch_decompositions,
)

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (aten.add.Tensor, "torch.aten.add.Tensor"),
        (aten.relu.default, "torch.aten.relu"),
        (torch.ops.prims.sum.default, "torch.prims.sum"),
    ],
    ids=str,
)
def test_names_in_the_dialect(operator, name):
    assert mlir_name(operator) == name


def test_the_dialect_is_asked_for_overloads():
    assert is_known(aten.add.Tensor)
    assert not is_known(aten.add.out)
    assert not is_known(aten.special_airy_ai.default)


def test_operators_of_the_dialect_are_decomposed_only_where_listed():
    entries = {entry.operator: entry for entry in torch_decompositions()}
    known = {operator for operator in entries if is_known(operator)}
    assert known and known <= set(DECOMPOSED_THOUGH_KNOWN)
    assert all(entries[operator].reason == DECOMPOSED_THOUGH_KNOWN[operator] for operator in known)


def test_composite_operators_are_among_the_decompositions():
    operators = {entry.operator for entry in torch_decompositions()}
    assert aten.einsum.default in operators
    assert all(operator.namespace in ("aten", "prims") for operator in operators)
