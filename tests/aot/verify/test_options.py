"""Options of a verification: defaults, bounds, tolerances by element type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from pelton.aot.spec.errors import ExportError
from pelton.aot.verify.options import RELATIVE_TOLERANCES, Numerics
from pelton.runtime.call.dtypes import DTYPES


def test_true_is_the_default_and_false_is_nothing() -> None:
    assert Numerics.of(True) == Numerics()
    assert Numerics.of(False) is None
    given = Numerics(seeds=[3])
    assert Numerics.of(given) is given


@pytest.mark.parametrize("given", [None, 1, "yes"])
def test_anything_else_is_refused(given: Any) -> None:
    with pytest.raises(ExportError, match=r"expected True, False or aot\.Numerics"):
        Numerics.of(given)


def test_at_least_one_seed_is_needed() -> None:
    with pytest.raises(ExportError, match="seeds is empty"):
        Numerics(seeds=[])


@pytest.mark.parametrize("bounds", [(3, 2), (1,), (1, 2, 3)])
def test_bounds_of_integers_are_a_pair_in_order(bounds: Any) -> None:
    with pytest.raises(ExportError, match=r"integers\['tokens'\] must be \(low, high\)"):
        Numerics(integers={"tokens": bounds})


def test_equal_bounds_are_one_value() -> None:
    assert Numerics(integers={"tokens": (0, 0)}).integers["tokens"] == (0, 0)


@pytest.mark.parametrize("key", ["float16", torch.float16, np.float16])
def test_tolerances_are_named_by_any_spelling_of_an_element_type(key: Any) -> None:
    options = Numerics(tolerances={key: 0.5})
    assert options.tolerance(DTYPES["float16"]) == 0.5
    assert options.tolerance(DTYPES["float32"]) == RELATIVE_TOLERANCES["float32"]


def test_integers_and_bools_must_be_equal() -> None:
    assert Numerics().tolerance(DTYPES["int64"]) == 0.0
    assert Numerics().tolerance(DTYPES["bool"]) == 0.0


@pytest.mark.parametrize("value", [-0.1, math.inf, math.nan])
def test_an_impossible_tolerance_is_refused(value: float) -> None:
    with pytest.raises(ExportError, match=r"tolerances\['float32'\] must be 0 or more"):
        Numerics(tolerances={"float32": value})


def test_an_unknown_element_type_lists_the_known_ones() -> None:
    with pytest.raises(ExportError, match="tolerances: 'float33' is no element type; known:"):
        Numerics(tolerances={"float33": 0.1})
