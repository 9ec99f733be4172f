"""Input infos of a function, from its signature alone."""

from __future__ import annotations

import pytest

from pelton.runtime.call.binding import Binder
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.input_infos import (
    DimensionInputInfo,
    InputInfo,
    ScalarInputInfo,
    ShapeBounds,
    input_infos,
)
from pelton.runtime.call.signature import (
    ConstantSpec,
    Leaf,
    Parameter,
    ScalarSpec,
    Signature,
    TensorSpec,
)
from pelton.runtime.call.sizes import Dim, Profile
from pelton.runtime.errors import ArtifactError, SignatureError

FLOAT = DTYPES["float32"]
BATCH = Dim("batch", 1, 8, 4)
PROFILES = (Profile("token", {"n": (1, 1, 1)}), Profile("prompt", {"n": (16, 32, 64)}))


def signature(leaf: Leaf, *dims: Dim, profiles: tuple[Profile, ...] = ()) -> Signature:
    x = Parameter("x", "POSITIONAL_OR_KEYWORD", 0)
    return Signature("main", (x,), (leaf,), dims=dims, profiles=profiles)


def test_static_tensor() -> None:
    (info,) = input_infos(signature(TensorSpec(FLOAT, (2, 3)))).values()
    assert info == InputInfo(ShapeBounds((2, 3), (2, 3), (2, 3)), FLOAT, {})


def test_dynamic_dimension_has_bounds_and_name() -> None:
    (info,) = input_infos(signature(TensorSpec(FLOAT, ("batch", 3)), BATCH)).values()
    assert info == InputInfo(ShapeBounds((1, 3), (4, 3), (8, 3)), FLOAT, {0: "batch"})


def test_size_without_largest_or_optimal_value() -> None:
    (info,) = input_infos(signature(TensorSpec(FLOAT, ("n",)), Dim("n", 2))).values()
    assert isinstance(info, InputInfo)
    assert info.shape_bounds == ShapeBounds((2,), (None,), (None,))


def test_expression_that_falls_has_ordered_bounds() -> None:
    size = ["-", 10, "batch"]
    (info,) = input_infos(signature(TensorSpec(FLOAT, (size,)), BATCH)).values()
    assert isinstance(info, InputInfo)
    assert info.shape_bounds == ShapeBounds((2,), (6,), (9,))
    assert info.dimension_names == {}


def test_integer_is_a_dimension() -> None:
    (info,) = input_infos(signature(ScalarSpec("int", "batch"), BATCH)).values()
    assert info == DimensionInputInfo((1, 4, 8), "batch")


def test_integer_without_bounds() -> None:
    (info,) = input_infos(signature(ScalarSpec("int"))).values()
    assert info == DimensionInputInfo((None, None, None))


@pytest.mark.parametrize("kind", ["float", "bool"])
def test_other_numbers(kind: str) -> None:
    assert input_infos(signature(ScalarSpec(kind))) == {"x": ScalarInputInfo(kind)}


def test_constants_are_no_inputs() -> None:
    assert input_infos(signature(ConstantSpec(3))) == {}


def test_profiles_survive_json() -> None:
    given = signature(TensorSpec(FLOAT, ("n",)), Dim("n", 1, 64, 8), profiles=PROFILES)
    read = Signature.from_json(given.to_json())
    assert read == given
    assert str(read).endswith("in 'token' (n=1..1) or 'prompt' (n=16..64)")


@pytest.mark.parametrize("bounds", ['{"n":[1,2]}', '{"n":3}', "[1]", '{"n":["a","b","c"]}'])
def test_damaged_profile_is_refused(bounds: str) -> None:
    given = signature(TensorSpec(FLOAT, ("n",)), Dim("n", 1, 64, 8), profiles=PROFILES[:1])
    text = given.to_json().replace('{"n":[1,1,1]}', bounds)
    with pytest.raises(ArtifactError, match="not a signature"):
        Signature.from_json(text)


class Array:
    """What the check of a call looks at."""

    dtype = "float32"

    def __init__(self, *shape: int) -> None:
        self.shape = shape


@pytest.mark.parametrize("size", [1, 16, 40, 64])
def test_size_in_a_profile_fits(size: int) -> None:
    given = signature(TensorSpec(FLOAT, ("n",)), Dim("n", 1, 64, 8), profiles=PROFILES)
    assert Binder(given).fits([Array(size)])


def test_size_between_profiles_names_them() -> None:
    given = signature(TensorSpec(FLOAT, ("n",)), Dim("n", 1, 64, 8), profiles=PROFILES)
    binder = Binder(given)
    assert not binder.fits([Array(8)])
    expected = (
        r"main\(\): no profile takes n=8 \(dimension 0 of argument x\); "
        r"the profiles are 'token' \(n=1\.\.1\), 'prompt' \(n=16\.\.64\)"
    )
    with pytest.raises(SignatureError, match=expected):
        binder.explain([Array(8)])


def test_profile_must_hold_for_all_its_dimensions_at_once() -> None:
    profiles = (
        Profile("wide", {"m": (4, 4, 4), "n": (1, 1, 1)}),
        Profile("tall", {"m": (1, 1, 1), "n": (4, 4, 4)}),
    )
    dims = (Dim("m", 1, 4, 1), Dim("n", 1, 4, 1))
    binder = Binder(signature(TensorSpec(FLOAT, ("m", "n")), *dims, profiles=profiles))
    assert binder.fits([Array(4, 1)])
    assert not binder.fits([Array(4, 4)])
