"""Optimisation profiles from the bounds of signatures."""

from __future__ import annotations

import pytest

from pelton import aot
from pelton.aot.targets.tensorrt.bounds import check_profiles, engine_profiles, profiled
from pelton.runtime.artifacts.entry_points import Bounds, Port
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import Constraint, Dim

F32, I64 = DTYPES["float32"], DTYPES["int64"]


def tensor(name: str, *shape: object) -> Port:
    return Port(name, "user", name, F32, shape)


def signature(*dims: Dim, constraints: tuple[Constraint, ...] = ()) -> Signature:
    return Signature("main", dims=dims, constraints=constraints)


def test_derived_sizes_have_derived_bounds() -> None:
    x = tensor("x", ["+", ["*", 2, "n"], 1], ["-", 20, "n"])
    (profile,) = engine_profiles(signature(Dim("n", 1, 8, 4)), [x])
    assert profile.inputs["x"] == Bounds((3, 12), (9, 16), (17, 19))


def test_fixed_inputs_need_no_bounds() -> None:
    (profile,) = engine_profiles(signature(Dim("n", 0, 8, 4)), [tensor("x", "n"), tensor("y", 3)])
    assert dict(profile.inputs) == {"x": Bounds((0,), (4,), (8,))}


def test_without_an_optimal_size_the_largest_is_it() -> None:
    (profile,) = engine_profiles(signature(Dim("n", 1, 8)), [tensor("x", "n")])
    assert profile.inputs["x"].opt == (8,)


def test_a_missing_upper_bound_is_refused_with_all_others() -> None:
    dims = (Dim("batch", 1), Dim("length", 2), Dim("width", 1, 4))
    with pytest.raises(aot.DynamicShapeError, match=r"none for 'batch' \(1\.\.\), 'length' \(2"):
        engine_profiles(signature(*dims), [tensor("x", "batch", "length", "width")])


def test_profiles_may_bound_what_the_export_did_not() -> None:
    bounded = profiled(signature(Dim("n", 1)), [{"n": (1, 2, 4)}, {"n": (8, 8, 16)}])
    first, second = engine_profiles(bounded, [tensor("x", "n")])
    assert (first.inputs["x"].max, second.inputs["x"].min) == ((4,), (8,))


def test_ends_that_the_program_cannot_have_are_left_out() -> None:
    multiple = Constraint("==", ["%", "n", 4], 0)
    limited = signature(Dim("n", 1, 30, 8), constraints=(multiple,))
    (profile,) = engine_profiles(limited, [tensor("x", "n")])
    assert profile.inputs["x"] == Bounds((4,), (8,), (28,))


def test_an_optimum_that_the_program_cannot_have_is_refused() -> None:
    multiple = Constraint("==", ["%", "n", 4], 0)
    limited = signature(Dim("n", 1, 30, 6), constraints=(multiple,))
    with pytest.raises(aot.ExportError, match=r"optimised for n=6.*it needs n%4 == 0"):
        engine_profiles(limited, [tensor("x", "n")])


def test_values_of_host_inputs_are_bounded() -> None:
    sized = Signature("main", inputs=(ScalarSpec("int", "n"),), dims=(Dim("n", 0, 16, 4),))
    n = Port("n", "user", "n", I64, (), is_scalar=True, host=True)
    (profile,) = engine_profiles(sized, [n])
    assert dict(profile.inputs) == {"n": Bounds((0,), (4,), (16,))}


def test_a_host_input_without_bounds_is_refused() -> None:
    given = Signature("main", inputs=(TensorSpec(I64, (2,)),))
    sizes = Port("sizes", "user", "sizes", I64, (2,), host=True)
    with pytest.raises(aot.DynamicShapeError, match=r"values of .sizes.*DimensionInputInfo"):
        engine_profiles(given, [sizes])


def test_functions_take_the_profiles_of_their_own_dimensions() -> None:
    given = {"token": {"length": 1}, "prompt": {"length": (2, 8, 16), "batch": 1}}
    decode = profiled(signature(Dim("batch", 1, 4, 2)), given)
    assert [str(profile) for profile in decode.profiles] == ["'prompt' (batch=1..1)"]


def test_a_profile_of_an_unknown_dimension_is_refused() -> None:
    functions = [signature(Dim("batch", 1, 4)), signature(Dim("length", 1, 8))]
    with pytest.raises(aot.DynamicShapeError, match=r"no function has.*lenght.*batch=1\.\.4, len"):
        check_profiles(functions, [{"lenght": (1, 2, 3)}])


def test_a_profile_outside_of_the_range_is_refused() -> None:
    with pytest.raises(aot.DynamicShapeError, match=r"bounds 1\.\.9, outside its range 1\.\.8"):
        profiled(signature(Dim("n", 1, 8)), [{"n": (1, 2, 9)}])
