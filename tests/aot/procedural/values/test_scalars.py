"""Traced scalars: torch's arithmetic, Python's rounding, and the types of results."""

from __future__ import annotations

import operator

import pytest
import torch

from pelton import aot, runtime
from pelton.aot.procedural.values.arithmetic import DTYPE_OF_KIND
from pelton.aot.procedural.values.scalars import (
    dim_value_or_none,
    index_scalar,
    same_size,
    scalar_of,
    scalar_of_type,
    select,
)
from tests.aot.procedural.traces import folded, names_of, scalar, tracing
from tests.programs import assert_same, check_ir, through_files


class Numbers(aot.CompiledModule):
    def integers(self, i=aot.AbstractI32, j=aot.AbstractI64):
        return {
            "+": i + 1, "r-": 10 - i, "*": i * j, "//": j // 3, "r//": 7 // i, "%": j % 3,
            "-": -i, "abs": abs(j), "~": ~i, "<<": i << 2, ">>": j >> 1, "^": i ^ 5,
        }  # fmt: skip

    def floats(self, x=aot.AbstractF32, y=aot.AbstractF64):
        return {
            "+": x + 1.5, "r/": 3 / x, "**": x**2, "//": x // 0.3, "%": x % 0.3,
            "wide": x + y, "y": y * 2, "clamp": x.clamp(0, 0.5), "-": -x, "abs": abs(y),
        }  # fmt: skip

    def mixed(self, i=aot.AbstractI32, x=aot.AbstractF32, n=aot.AbstractIndex):
        return i / 2, i + 0.5, i * x, n + i, n / 2

    def comparisons(self, i=aot.AbstractI32, x=aot.AbstractF32):
        return [i == 3, i != 3, i < x, 2 <= i, x > 0.5, (i >= 3) & (x < 1), (i > 9) | ~(x < 0)]

    def conversions(self, i=aot.AbstractI32, x=aot.AbstractF32, y=aot.AbstractF64):
        return [
            i.to(torch.float64), i.to(torch.int64), x.to(torch.int32), y.to(torch.float32),
            y.to(torch.int64), x.to(torch.float64), i.to(torch.bool), (i > 0).to(torch.float32),
        ]  # fmt: skip

    def of_tensor(self, x=aot.AbstractTensor(dtype=torch.bfloat16)):
        return x.item() + 1, x * 2


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    return through_files(aot.export(Numbers), tmp_path_factory.mktemp("numbers"))


@pytest.mark.parametrize(("i", "j"), [(7, -8), (-3, 8), (2, 9)])
def test_integers_are_those_of_python(numbers: runtime.Executable, i: int, j: int) -> None:
    expected = {
        "+": i + 1, "r-": 10 - i, "*": i * j, "//": j // 3, "r//": 7 // i, "%": j % 3,
        "-": -i, "abs": abs(j), "~": ~i, "<<": i << 2, ">>": j >> 1, "^": i ^ 5,
    }  # fmt: skip
    assert numbers.integers(i, j) == expected


@pytest.mark.parametrize(("x", "y"), [(0.7, -1.25), (-0.8, 3.5)])
def test_floats_are_those_of_torch(numbers: runtime.Executable, x: float, y: float) -> None:
    t, w = torch.tensor(x), torch.tensor(y, dtype=torch.float64)
    expected = {
        "+": t + 1.5, "r/": 3 / t, "**": t**2, "//": t // 0.3, "%": t % 0.3,
        "wide": t + w, "y": w * 2, "clamp": t.clamp(0, 0.5), "-": -t, "abs": w.abs(),
    }  # fmt: skip
    assert_same(numbers.floats(x, y), {key: value.item() for key, value in expected.items()})


def test_integers_and_floats_mix_as_in_torch(numbers: runtime.Executable) -> None:
    assert_same(numbers.mixed(3, 0.5, 4), (1.5, 3.5, 1.5, 7, 2.0))


def test_comparisons_and_logic(numbers: runtime.Executable) -> None:
    assert numbers.comparisons(3, 0.75) == [True, False, False, True, True, True, True]
    assert numbers.comparisons(-1, -2.0) == [False, True, False, False, False, False, False]


def test_conversions_truncate_and_keep_width(numbers: runtime.Executable) -> None:
    assert numbers.conversions(-3, -2.75, 2.5) == [-3.0, -3, -2, 2.5, 2, -2.75, True, 0.0]


def test_the_item_of_a_narrow_float_is_a_float32(numbers: runtime.Executable) -> None:
    x = torch.tensor(1.5, dtype=torch.bfloat16)
    assert_same(numbers.of_tensor(x), (2.5, x * 2))


def test_operations_are_plain_arithmetic() -> None:
    check_ir(
        aot.export(Numbers),
        """
        CHECK: func.func @integers(%arg0: i32, %arg1: i64)
        CHECK: %c1_i32 = arith.constant 1 : i32
        CHECK: arith.addi %arg0, %c1_i32 : i32
        CHECK: arith.extsi %arg0 : i32 to i64
        CHECK: arith.floordivsi %arg1
        CHECK: func.func @floats(%arg0: f32, %arg1: f64)
        CHECK: math.powf
        CHECK: arith.extf %arg0 : f32 to f64
        """,
    )


# One operation at a time, without a compiler


def test_a_python_number_takes_the_type_of_the_other_operand() -> None:
    with tracing(aot.AbstractI32, aot.AbstractF64, aot.AbstractIndex, aot.AbstractBool) as trace:
        i, y, n, b = trace.proxy_posargs
        kinds = [(i + 1).kind, (1 - i).kind, (i + 1.5).kind, (y * 2).kind, (n + 1).kind]
        assert kinds == ["i32", "i32", "f32", "f64", "index"]
        assert [(b + 1).kind, (b & True).kind, (i == 1).kind] == ["i64", "i1", "i1"]


def test_what_is_no_number_is_not_an_operand() -> None:
    with tracing(aot.AbstractI64) as trace:
        (i,) = trace.proxy_posargs
        for other in ("1", None, [1], 1j):
            with pytest.raises(TypeError, match="unsupported operand"):
                i + other
        assert (i == "1") is False


def test_a_literal_that_does_not_fit_is_refused() -> None:
    with tracing(aot.AbstractI32) as trace:
        (i,) = trace.proxy_posargs
        with pytest.raises(
            aot.ProcedureTraceError, match=r"f\(\): 4294967296 does not fit into i32"
        ):
            i + 2**32


def test_floats_have_no_bits() -> None:
    with tracing(aot.AbstractF32) as trace:
        (x,) = trace.proxy_posargs
        with pytest.raises(aot.ProcedureTraceError, match=r"`&` takes integers or bools, got f32"):
            x & 1
        with pytest.raises(aot.ProcedureTraceError, match=r"`~` takes integers or bools, got f32"):
            operator.invert(x)


def test_plus_is_the_scalar_itself() -> None:
    with tracing(aot.AbstractI64) as trace:
        (i,) = trace.proxy_posargs
        assert +i is i
        assert names_of(trace) == ["func.func"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(None, None, [-9, 2, 9]), (0, None, [0, 2, 9]), (None, 3, [-9, 2, 3]), (0, 3, [0, 2, 3])],
)
def test_a_clamp_has_two_optional_bounds(
    low: int | None, high: int | None, expected: list[int]
) -> None:
    with tracing() as trace:
        values = [scalar(trace, n, "i64") for n in (-9, 2, 9)]
        assert folded(trace, [value.clamp(low, high) for value in values]) == expected


def test_a_clamp_with_a_traced_bound_has_the_type_of_the_scalar() -> None:
    with tracing() as trace:
        value, bound = scalar(trace, 9, "index"), scalar(trace, 4, "i32")
        result = value.clamp(max=bound)
        assert result.kind == "index"
        assert folded(trace, [result]) == [4]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.uint8, torch.complex64])
def test_there_are_no_scalars_of_some_types(dtype: torch.dtype) -> None:
    with tracing(aot.AbstractI64) as trace:
        with pytest.raises(aot.ProcedureTraceError, match=f"no scalars of type {dtype}"):
            trace.proxy_posargs[0].to(dtype)


@pytest.mark.parametrize(("kind", "dtype"), DTYPE_OF_KIND.items())
def test_a_scalar_knows_its_dtype(kind: str, dtype: torch.dtype) -> None:
    with tracing() as trace:
        value = scalar(trace, 1, kind)
        assert (value.kind, value.dtype, repr(value)) == (kind, dtype, f"<traced {kind}>")


def test_differences_of_sums_are_known() -> None:
    with tracing(aot.AbstractI64, aot.AbstractI64) as trace:
        i, n = trace.proxy_posargs
        assert ((i + 3) - i).affine().constant == 3
        assert ((2 + i + n) - (n + i)).affine().constant == 2
        assert ((5 - i) + i).affine().constant == 5
        assert ((i + n) - i).affine().unknown == n.ir_value
        assert (i * 2 - i).affine().constant is None
        assert ((i + 1.5) - i).affine().constant is None


def test_a_size_is_equal_to_itself_and_to_equal_sums() -> None:
    with tracing(aot.AbstractIndex, aot.AbstractIndex) as trace:
        m, n = trace.proxy_posargs
        assert same_size(3, 3)
        assert not same_size(3, 4)
        assert not same_size(3, n)
        assert not same_size(n, 3)
        assert same_size(n, n)
        assert same_size(n + 1, 1 + n)
        assert same_size(m + n, n + m)
        assert not same_size(n, n + 1)
        assert not same_size(m, n)


def test_sizes_of_tensors_are_known_as_such() -> None:
    with tracing(aot.AbstractTensor(None, 4), aot.AbstractI64) as trace:
        x, i = trace.proxy_posargs
        size = x.shape[0].ir_value
        found = dim_value_or_none(trace, size)
        assert found is not None
        assert found.ir_value == size
        assert dim_value_or_none(trace, i.ir_value) is None
        assert dim_value_or_none(trace, None) is None


@pytest.mark.parametrize(("value", "kind"), [(True, "i1"), (3, "i64"), (-1, "i64"), (1.5, "f32")])
def test_a_number_becomes_a_traced_scalar(value: float, kind: str) -> None:
    with tracing() as trace:
        result = scalar_of(trace, value)
        assert result.kind == kind
        assert scalar_of(trace, result) is result
        assert folded(trace, [result]) == [value]


@pytest.mark.parametrize("value", ["1", None, torch.ones(1), (1,)])
def test_what_is_no_number_becomes_no_scalar(value: object) -> None:
    with tracing() as trace:
        with pytest.raises(aot.ProcedureTraceError, match=r"f\(\): expected a number, got"):
            scalar_of(trace, value)


FITS = [
    (3, "i32", 3), (3, "f32", 3.0), (1.5, "f64", 1.5), (True, "i1", True), (-1, "index", -1),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind", "expected"), FITS)
def test_a_number_fits_a_kind(value: float, kind: str, expected: float) -> None:
    with tracing() as trace:
        assert folded(trace, [scalar_of_type(trace, value, kind, "n")]) == [expected]


@pytest.mark.parametrize(
    ("value", "kind"),
    [(1.5, "i64"), (True, "i64"), (1, "i1"), ("1", "i64"), (None, "f32"), (False, "f32")],
)
def test_a_number_of_another_kind_is_refused(value: object, kind: str) -> None:
    with tracing() as trace:
        with pytest.raises(
            aot.ProcedureTraceError, match=rf"argument n takes {kind}, got {value!r}"
        ):
            scalar_of_type(trace, value, kind, "argument n")


@pytest.mark.parametrize(
    ("source", "kind", "fits"),
    [
        ("i32", "i64", True), ("i64", "index", True), ("index", "i64", True), ("i8", "i16", True),
        ("i64", "i32", False), ("i64", "f32", False), ("f32", "f64", False), ("i1", "i64", False),
    ],
)  # fmt: skip
def test_a_traced_scalar_is_widened_but_never_narrowed(source: str, kind: str, fits: bool) -> None:
    with tracing() as trace:
        value = scalar(trace, 1, source)
        if fits:
            assert str(scalar_of_type(trace, value, kind, "n").type) == kind
            return
        with pytest.raises(aot.ProcedureTraceError, match=rf"n takes {kind}, got .*{source}"):
            scalar_of_type(trace, value, kind, "n")


def test_an_index_is_made_of_integers_only() -> None:
    with tracing(aot.AbstractI32, aot.AbstractIndex) as trace:
        i, n = trace.proxy_posargs
        assert index_scalar(trace, n) is n
        assert index_scalar(trace, i).kind == "index"
        assert same_size(index_scalar(trace, i + 2), index_scalar(trace, i) + 2)
        for wrong in (True, 1.5, scalar(trace, True, "i1"), scalar(trace, 1, "f32")):
            with pytest.raises(aot.ProcedureTraceError, match="a size or position is an integer"):
                index_scalar(trace, wrong)


@pytest.mark.parametrize("condition", [True, False])
def test_a_select_of_two_sizes(condition: bool) -> None:
    with tracing() as trace:
        bool_, size = scalar(trace, condition, "i1"), scalar(trace, 7, "index")
        results = [
            select(trace, bool_, size, 3), select(trace, bool_, 3, size), select(trace, bool_, 1, 2)
        ]  # fmt: skip
        assert [result.kind for result in results] == ["index"] * 3
        assert folded(trace, results) == ([7, 3, 1] if condition else [3, 7, 2])


def test_a_scalar_refers_to_another_value_after_set() -> None:
    with tracing(aot.AbstractI64) as trace:
        (i,) = trace.proxy_posargs
        before = i.ir_value
        i.set(i + 1)
        assert i.ir_value != before
        i.set(5)
        assert folded(trace, [i]) == [5]


def test_a_scalar_of_an_outer_region_cannot_be_set() -> None:
    with tracing(aot.AbstractI64) as trace:
        (i,) = trace.proxy_posargs
        with pytest.raises(aot.ProcedureTraceError, match="made outside of this loop body"):
            aot.for_loop(i, lambda n, _: i.set(n))
