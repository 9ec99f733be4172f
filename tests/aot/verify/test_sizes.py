import pytest

from pelton.aot.verify.sizes import fits, size_cases
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import Parameter, ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import Constraint, Dim, Profile, Size


def signature(*shape: Size, dims: tuple[Dim, ...], **more: object) -> Signature:
    spec = TensorSpec(DTYPES["float32"], shape)
    parameter = Parameter("x", "POSITIONAL_OR_KEYWORD", 0)
    return Signature("main", (parameter,), (spec,), 0, (spec,), dims, **more)  # type: ignore[arg-type]


def tried(found: Signature, *more: dict[str, int]) -> dict[str, dict[str, int]]:
    return {case.label: dict(case.values) for case in size_cases(found, more)[0]}


def test_a_function_of_fixed_sizes_is_tried_once() -> None:
    assert tried(signature(3, dims=())) == {"fixed": {}}


def test_each_dimension_is_tried_at_its_ends_its_optimum_at_one_and_at_an_odd_size() -> None:
    found = tried(signature("n", dims=(Dim("n", 0, 64, 32),)))
    assert [values["n"] for values in found.values()] == [0, 32, 64, 1, 31]


def test_several_dimensions_are_tried_together_and_each_alone() -> None:
    found = tried(signature("b", "t", dims=(Dim("b", 1, 4, 2), Dim("t", 1, 12, 6))))
    assert found["max"] == {"b": 4, "t": 12}
    assert found["b=max"] == {"b": 4, "t": 6}
    assert found["t=min"] == {"b": 2, "t": 1}


def test_a_dimension_without_bounds_is_tried_at_small_sizes() -> None:
    assert all(v["n"] < 20 for v in tried(signature("n", dims=(Dim("n"),))).values())


@pytest.mark.parametrize(
    "constraint",
    [
        Constraint("==", ["%", "n", 4], 0),
        Constraint("!=", "n", 1),
        Constraint("==", "n", ["*", 2, "m"]),
        Constraint("<", "m", "n"),
    ],
    ids=str,
)
def test_relations_between_sizes_are_kept(constraint: Constraint) -> None:
    dims = (Dim("n", 1, 40, 7), Dim("m", 1, 40, 7))
    found = tried(signature("n", "m", dims=dims, constraints=(constraint,)))
    assert len(found) > 2
    assert all(constraint.holds(values) for values in found.values())


def test_sizes_derived_from_a_dimension_are_never_negative() -> None:
    found = signature(["-", "n", 3], "n", dims=(Dim("n", 0, 9),))
    assert not fits(found, {"n": 2})
    assert min(values["n"] for values in tried(found).values()) == 3


def test_each_profile_is_tried_within_its_own_bounds() -> None:
    profiles = (Profile("token", {"t": (1, 1, 1)}), Profile("prompt", {"t": (8, 16, 32)}))
    found = tried(signature("t", dims=(Dim("t", 1, 32),), profiles=profiles))
    assert {values["t"] for values in found.values()} == {1, 8, 16, 32, 19}


def test_sizes_that_cannot_fit_together_are_noted() -> None:
    impossible = Constraint("<", "n", 0)
    found, notes = size_cases(signature("n", dims=(Dim("n", 1, 4),), constraints=(impossible,)))
    assert found == []
    assert "no sizes near min (n=1) fit together" in notes[0]


def test_sizes_that_were_asked_for_are_tried_too() -> None:
    found = signature("b", "t", dims=(Dim("b", 1, 4, 2), Dim("t", 1, 12, 6)))
    assert tried(found, {"t": 11})["asked"] == {"b": 2, "t": 11}


def test_the_size_of_an_input_number_is_a_dimension_like_others() -> None:
    number = Parameter("n", "POSITIONAL_OR_KEYWORD", 0)
    found = Signature("main", (number,), (ScalarSpec("int", "n"),), dims=(Dim("n", 1, 9, 4),))
    assert {v["n"] for v in tried(found).values()} == {1, 4, 9, 5}
