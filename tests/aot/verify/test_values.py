"""Values of inputs: reproducible, within bounds, of every element type."""

from __future__ import annotations

import math

import pytest
import torch

from pelton.aot.verify.options import Numerics
from pelton.aot.verify.values import InputMaker, InputPattern, fillings, shape_of, tensor
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import ConstantSpec, Parameter, ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import Dim

FLOAT = DTYPES["float32"]


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def maker(*leaves: object, bounds: dict[int, tuple[int, int]] | None = None) -> InputMaker:
    parameters = [Parameter(f"x{i}", "POSITIONAL_OR_KEYWORD", i) for i in range(len(leaves))]
    signature = Signature("main", tuple(parameters), tuple(leaves), 0, (leaves[0],), (Dim("n"),))
    return InputMaker(signature, bounds or {})


def test_patterns_that_the_options_ask_for() -> None:
    kinds = [str(pattern) for pattern in fillings(Numerics(seeds=[5], nonfinite=True))]
    assert kinds == ["random 5", "zeros", "edges", "nonfinite"]
    assert [p.kind for p in fillings(Numerics(seeds=[0], special_values=False))] == ["random"]


@pytest.mark.parametrize("name", sorted(DTYPES))
@pytest.mark.parametrize("kind", ["random", "zeros", "edges"])
def test_every_element_type_is_made(name: str, kind: str) -> None:
    found = tensor(DTYPES[name], [2, 3], None, InputPattern(kind), generator())
    assert found.dtype is getattr(torch, name)
    assert found.shape == (2, 3)


@pytest.mark.parametrize("shape", [[], [0], [0, 3], [1]])
def test_any_shape_is_made(shape: list[int]) -> None:
    found = tensor(FLOAT, shape, None, InputPattern("edges"), generator())
    assert list(found.shape) == shape


@pytest.mark.parametrize("bounds", [(0, 0), (-3, -1), (2, 5), (0, 2**63 - 1)])
def test_integers_are_within_their_bounds(bounds: tuple[int, int]) -> None:
    found = tensor(DTYPES["int64"], [100], bounds, InputPattern("random"), generator())
    assert bounds[0] <= int(found.min()) and int(found.max()) <= bounds[1]


@pytest.mark.parametrize(("bounds", "zero"), [((0, 9), 0), ((3, 9), 3), ((-9, -2), -2)])
def test_zeros_of_integers_are_the_nearest_value_within_bounds(
    bounds: tuple[int, int], zero: int
) -> None:
    found = tensor(DTYPES["int32"], [2], bounds, InputPattern("zeros"), generator())
    assert found.tolist() == [zero, zero]


def test_values_that_are_not_finite_occur() -> None:
    found = tensor(FLOAT, [200], None, InputPattern("nonfinite"), generator())
    assert bool(found.isnan().any())
    assert {math.inf, -math.inf} <= set(found[~found.isnan()].tolist())


def test_the_same_seed_gives_the_same_inputs() -> None:
    made = maker(TensorSpec(FLOAT, ("n", 2)))
    first, second = (made.make({"n": 3}, InputPattern("random", 7))[0] for _ in range(2))
    assert torch.equal(first, second)
    (other,) = made.make({"n": 3}, InputPattern("random", 8))
    assert not torch.equal(first, other)


def test_constants_are_no_inputs_and_sizes_are_given() -> None:
    made = maker(TensorSpec(FLOAT, ("n",)), ConstantSpec(3), ScalarSpec("int", size="n"))
    tensor_leaf, size = made.make({"n": 4}, InputPattern("random"))
    assert tensor_leaf.shape == (4,)
    assert size == 4


def test_scalars_have_their_python_type() -> None:
    made = maker(ScalarSpec("int"), ScalarSpec("float"), ScalarSpec("bool"), bounds={0: (5, 5)})
    integer, number, truth = made.make({}, InputPattern("random"))
    assert (integer, type(number), type(truth)) == (5, float, bool)


def test_memory_of_the_inputs() -> None:
    made = maker(TensorSpec(FLOAT, ("n", 2)), TensorSpec(DTYPES["int8"], (3,)))
    assert made.size_bytes({"n": 5}) == 5 * 2 * 4 + 3
    assert made.size_bytes({"n": 0}) == 3


def test_expressions_of_sizes_are_evaluated() -> None:
    assert shape_of(TensorSpec(FLOAT, ("n", 1, "n")), {"n": 6}) == [6, 1, 6]
