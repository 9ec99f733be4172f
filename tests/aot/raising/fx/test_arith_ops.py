"""Arithmetic of procedures: the numbers of each type, comparisons, selections and casts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton.aot.spec.errors import UnsupportedOpError
from tests.aot.raising.texts import body, raised, run, same, targets_of

DTYPES = {
    "i1": torch.bool, "i8": torch.int8, "i32": torch.int32, "i64": torch.int64, "f16": torch.half,
    "f32": torch.float32, "f64": torch.float64, "index": torch.int64,
}  # fmt: skip
FLOATS = ("f16", "f32", "f64")


def value_of(number: Any, type_: str) -> Any:
    return number if type_ in ("i64", "index") else torch.tensor(number, dtype=DTYPES[type_])


def binary(name: str, type_: str, left: Any, right: Any) -> torch.Tensor:
    text = body(
        f"%c = {name} %a, %b : {type_} return %c : {type_}", f"%a: {type_}, %b: {type_}", type_
    )
    (found,) = run(text, value_of(left, type_), value_of(right, type_))
    return found


@pytest.mark.parametrize("type_", ["i32", "i64", "index"])
@pytest.mark.parametrize(
    ("name", "left", "right", "expected"),
    [
        ("addi", 7, -9, -2), ("subi", 7, -9, 16), ("muli", 7, -9, -63),
        ("floordivsi", -7, 2, -4), ("divsi", -7, 2, -3), ("remsi", -7, 2, -1), ("remsi", 7, -2, 1),
        ("maxsi", -7, 2, 2), ("minsi", -7, 2, -7), ("andi", 6, 3, 2), ("ori", 6, 3, 7),
        ("xori", 6, 3, 5), ("shli", 3, 2, 12), ("shrsi", -8, 1, -4),
    ],
)  # fmt: skip
def test_integers(type_: str, name: str, left: int, right: int, expected: int) -> None:
    assert same(binary(f"arith.{name}", type_, left, right), expected, DTYPES[type_])


@pytest.mark.parametrize("name", ["addi", "subi", "muli"])
def test_integers_of_their_width_wrap(name: str) -> None:
    found = binary(f"arith.{name}", "i8", -128 if name == "subi" else 127, 3)
    assert same(found, {"addi": -126, "subi": 125, "muli": 125}[name], torch.int8)


def test_constants_of_32_bits_wrap_too() -> None:
    text = body(
        """
        %a = arith.constant 2147483647 : i32
        %b = arith.addi %a, %a : i32
        return %b : i32
        """,
        "",
        "i32",
    )
    assert same(run(text)[0], -2, torch.int32)


@pytest.mark.parametrize(
    ("name", "left", "right", "expected"),
    [
        ("arith.addf", 0.5, 2.0, 2.5), ("arith.subf", 0.5, 2.0, -1.5),
        ("arith.mulf", 0.5, -2.0, -1.0), ("arith.divf", 1.0, -4.0, -0.25),
        ("arith.divf", 1.0, 0.0, float("inf")),
        ("arith.remf", -7.5, 2.0, -1.5), ("arith.maximumf", -1.0, 2.0, 2.0),
        ("arith.minimumf", -1.0, 2.0, -1.0), ("math.powf", 2.0, -2.0, 0.25),
    ],
)  # fmt: skip
@pytest.mark.parametrize("type_", FLOATS)
def test_floats(type_: str, name: str, left: float, right: float, expected: float) -> None:
    assert same(binary(name, type_, left, right), expected, DTYPES[type_])


@pytest.mark.parametrize("name", ["arith.maximumf", "arith.minimumf"])
def test_an_extreme_of_nan_is_nan(name: str) -> None:
    assert binary(name, "f32", float("nan"), 1.0).isnan()
    assert binary(name, "f32", 1.0, float("nan")).isnan()


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [("arith.negf", 1.5, -1.5), ("math.absf", -1.5, 1.5), ("math.floor", -1.5, -2.0)],
)
def test_floats_of_one_operand(name: str, given: float, expected: float) -> None:
    text = body(f"%b = {name} %a : f32 return %b : f32", "%a: f32", "f32")
    assert same(run(text, torch.tensor(given))[0], expected, torch.float32)


def test_a_float_is_rounded_to_its_type_in_each_step() -> None:
    text = body(
        """
        %a = arith.constant 0.1 : f16
        %b = arith.addf %a, %x : f16
        return %b : f16
        """,
        "%x: f16",
        "f16",
    )
    x = torch.tensor(1000.0, dtype=torch.half)
    assert same(run(text, x)[0], (x + torch.tensor(0.1).half()).item(), torch.half)


def test_tensors_are_computed_elementwise() -> None:
    text = body(
        """
        %two = arith.constant dense<[2, -2]> : tensor<2xi32>
        %b = arith.divsi %a, %two : tensor<2xi32>
        return %b : tensor<2xi32>
        """,
        "%a: tensor<2xi32>",
        "tensor<2xi32>",
    )
    assert same(run(text, torch.tensor([-7, 7]).int())[0], [-3, -3], torch.int32)


def test_sizes_stay_numbers_that_may_shape_tensors() -> None:
    text = body(
        """
        %two = arith.constant 2 : index
        %a = arith.muli %n, %two : index
        %b = arith.maxsi %a, %two : index
        %c = arith.addi %b, %two : index
        return %c : index
        """,
        "%n: index",
        "index",
    )
    assert [run(text, n)[0].item() for n in (0, 3)] == [4, 8]
    assert not any(target.startswith("aten.a") for target in targets_of(raised(text)))


PREDICATES = {
    "eq": [0, 1, 0], "ne": [1, 0, 1], "slt": [1, 0, 0], "sle": [1, 1, 0],
    "sgt": [0, 0, 1], "sge": [0, 1, 1],
}  # fmt: skip


@pytest.mark.parametrize("predicate", PREDICATES)
@pytest.mark.parametrize("type_", ["i8", "i64"])
def test_integers_are_compared(type_: str, predicate: str) -> None:
    text = body(
        f"%c = arith.cmpi {predicate}, %a, %b : {type_} return %c : i1",
        f"%a: {type_}, %b: {type_}",
        "i1",
    )
    found = [run(text, value_of(a, type_), value_of(-1, type_))[0] for a in (-2, -1, 3)]
    assert [value.item() for value in found] == [bool(x) for x in PREDICATES[predicate]]


def test_constants_are_compared_before_the_graph_runs() -> None:
    text = body(
        """
        %a = arith.constant 2 : i32
        %b = arith.constant -3 : i32
        %c = arith.cmpi sgt, %a, %b : i32
        %d = arith.select %c, %b, %a : i32
        return %d : i32
        """,
        "",
        "i32",
    )
    assert same(run(text)[0], -3, torch.int32)
    assert targets_of(raised(text)) == ["aten.scalar_tensor.default"]


def test_an_unsigned_comparison_of_signed_numbers_is_refused() -> None:
    text = body("%c = arith.cmpi ult, %a, %b : i32 return %c : i1", "%a: i32, %b: i32", "i1")
    with pytest.raises(UnsupportedOpError, match="predicate 6 has no form in torch"):
        raised(text)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("oeq", [0, 1, 0, 0]), ("ogt", [0, 0, 1, 0]), ("oge", [0, 1, 1, 0]),
        ("olt", [1, 0, 0, 0]), ("ole", [1, 1, 0, 0]), ("une", [1, 0, 1, 1]),
    ],
)  # fmt: skip
def test_floats_are_compared_and_nan_is_unequal_to_all(predicate: str, expected: list[int]) -> None:
    text = body(
        f"%c = arith.cmpf {predicate}, %a, %b : tensor<4xf32> return %c : tensor<4xi1>",
        "%a: tensor<4xf32>, %b: tensor<4xf32>",
        "tensor<4xi1>",
    )
    a = torch.tensor([0.0, 1.0, 2.0, float("nan")])
    assert run(text, a, torch.ones(4))[0].int().tolist() == expected


@pytest.mark.parametrize("predicate", ["ueq", "ult", "one", "ord"])
def test_a_comparison_of_floats_that_torch_lacks_is_refused(predicate: str) -> None:
    text = body(
        f"%c = arith.cmpf {predicate}, %a, %b : f32 return %c : i1", "%a: f32, %b: f32", "i1"
    )
    with pytest.raises(UnsupportedOpError, match=r"arith\.cmpf with predicate \d+ has no form"):
        raised(text)


@pytest.mark.parametrize(("predicate", "function"), [("slt", max), ("sgt", min)])
def test_the_extreme_of_sizes_is_one_of_numbers(predicate: str, function: Any) -> None:
    text = body(
        f"%c = arith.cmpi {predicate}, %a, %b : index"
        " %d = arith.select %c, %b, %a : index return %d : index",
        "%a: index, %b: index",
        "index",
    )
    for a, b in ((2, 5), (5, 2), (3, 3)):
        assert run(text, a, b)[0].item() == function(a, b)
    assert "aten.where.self" not in targets_of(raised(text))


@pytest.mark.parametrize("predicate", ["slt", "sgt", "sle"])
def test_a_selection_that_is_no_extreme_is_not_taken_for_one(predicate: str) -> None:
    text = body(
        f"%c = arith.cmpi {predicate}, %a, %b : index"
        " %d = arith.select %c, %a, %b : index return %d : index",
        "%a: index, %b: index",
        "index",
    )
    for a, b in ((2, 5), (5, 2), (3, 3)):
        holds = {"slt": a < b, "sgt": a > b, "sle": a <= b}[predicate]
        assert run(text, a, b)[0].item() == (a if holds else b)


CASTS = [
    ("arith.extsi", "i8", -3, "i32", -3), ("arith.extui", "i1", True, "i32", 1),
    ("arith.extui", "i1", True, "i64", 1), ("arith.trunci", "i32", 259, "i8", 3),
    ("arith.trunci", "i64", 2**32 + 5, "i32", 5), ("arith.sitofp", "i32", -3, "f32", -3.0),
    ("arith.sitofp", "i64", 2**53 + 2, "f64", float(2**53 + 2)),
    ("arith.fptosi", "f32", -2.7, "i32", -2), ("arith.fptosi", "f64", 2.7, "i64", 2),
    ("arith.extf", "f16", 0.5, "f32", 0.5), ("arith.truncf", "f64", 0.1, "f32", 0.1),
    ("arith.index_cast", "i32", -4, "index", -4),
    ("arith.index_cast", "index", 2**31, "i32", -(2**31)),
    ("arith.index_cast", "i64", 9, "index", 9),
    ("arith.uitofp", "i1", True, "f32", 1.0),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "source", "given", "target", "expected"), CASTS, ids=lambda value: str(value)
)
def test_casts(name: str, source: str, given: Any, target: str, expected: Any) -> None:
    text = body(
        f"%b = {name} %a : {source} to {target} return %b : {target}", f"%a: {source}", target
    )
    assert same(run(text, value_of(given, source))[0], expected, DTYPES[target])


@pytest.mark.parametrize(
    ("name", "source", "literal", "target", "expected"),
    [
        ("arith.extui", "i1", "true", "i64", 1), ("arith.sitofp", "i64", "3", "f32", 3.0),
        ("arith.fptosi", "f32", "2.5", "i64", 2), ("arith.truncf", "f64", "0.1", "f32", 0.1),
        ("arith.trunci", "i64", "300", "i8", 44), ("arith.extsi", "i8", "-1", "i64", -1),
    ],
)  # fmt: skip
def test_casts_of_constants(
    name: str, source: str, literal: str, target: str, expected: Any
) -> None:
    constant = literal if source == "i1" else f"{literal} : {source}"
    text = body(
        f"%a = arith.constant {constant} %b = {name} %a : {source} to {target}"
        f" return %b : {target}",
        "",
        target,
    )
    assert same(run(text)[0], expected, DTYPES[target])
