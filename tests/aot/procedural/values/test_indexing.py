"""Indexing of traced tensors: torch's meaning, the operations of each index, and checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pelton import aot, runtime
from pelton.aot.procedural.module.procedure_trace import ProcedureTrace
from pelton.aot.procedural.values import indexing
from pelton.aot.procedural.values.indexing import plan_index
from pelton.aot.procedural.values.tensor_ops import DimSlice
from tests.aot.procedural.traces import folded, names_of, required, scalar, shape_of, tracing
from tests.programs import assert_same, check_ir, through_files


def reads(x: Any, i: Any, n: Any) -> list[Any]:
    return [
        x[i], x[:, i], x[0], x[-1], x[1:3], x[:, ::2], x[..., None, 0], x[i : i + 2], x[i:n],
        x[:n], x[n:], x[-2:], x[:, i : i + 1], x[None], x[:, [0, 2]], x[i, :, None], x[i][1:3],
    ]  # fmt: skip


def writes(x: Any, v: Any, i: Any, n: Any) -> list[Any]:
    a = x * 1
    a[0, i] = 7
    a[:, 1:3] = 0.5
    a[i] = v
    a[i + 1][2] = 9
    b = x + 0
    b[:, i : i + 1] = v[:1]
    b[n:] = -1
    b += 1
    b.mul_(2)
    b[:, ::3] = 4
    c = x + 0
    c[...] = 3
    c[0:2, 1:n] = x[2:4, 0 : n - 1]
    return [a, b, c]


class Indexing(aot.CompiledModule):
    def reads(self, x=aot.AbstractTensor(5, 4), i=aot.AbstractI64, n=aot.AbstractI64):
        return reads(x, i, n)

    def dynamic_reads(self, x=aot.AbstractTensor(None, 4), i=aot.AbstractI64, n=aot.AbstractI64):
        return reads(x, i, n)

    def writes(
        self,
        x=aot.AbstractTensor(5, 4),
        v=aot.AbstractTensor(4),
        i=aot.AbstractI64,
        n=aot.AbstractI64,
    ):
        return writes(x, v, i, n)

    def dynamic_writes(
        self,
        x=aot.AbstractTensor(None, 4),
        v=aot.AbstractTensor(4),
        i=aot.AbstractI64,
        n=aot.AbstractI64,
    ):
        return writes(x, v, i, n)

    def box(self, x=aot.AbstractTensor(5, 4), i=aot.AbstractI64):
        return x[i : i + 2]


@pytest.fixture(scope="module")
def executable(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    return through_files(aot.export(Indexing), tmp_path_factory.mktemp("indexing"))


X = torch.arange(20.0).reshape(5, 4)


@pytest.mark.parametrize(("i", "n"), [(0, 1), (1, 3), (2, 4)])
@pytest.mark.parametrize("name", ["reads", "dynamic_reads"])
def test_indexing_is_that_of_torch(
    executable: runtime.Executable, name: str, i: int, n: int
) -> None:
    assert_same(getattr(executable, name)(X, i, n), reads(X, i, n))


def test_negative_positions_count_from_the_end(executable: runtime.Executable) -> None:
    assert_same(executable.reads(X, 1, -1)[8:11], [X[1:-1], X[:-1], X[-1:]])


@pytest.mark.parametrize(("i", "n"), [(0, 2), (2, 4)])
@pytest.mark.parametrize("name", ["writes", "dynamic_writes"])
def test_assignment_is_that_of_torch(
    executable: runtime.Executable, name: str, i: int, n: int
) -> None:
    v = torch.tensor([10.0, 20.0, 30.0, 40.0])
    assert_same(getattr(executable, name)(X, v, i, n), writes(X, v, i, n))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.reads(X, 5, 1), "index beyond the end of dimension 0"),
        (lambda t: t.box(X, 4), "slice beyond the end of dimension"),
        (lambda t: t.box(X, -1), "slice before the start of dimension"),
    ],
)
def test_positions_out_of_range_stop_the_program_with_the_line(
    executable: runtime.Executable, call: Callable[[runtime.Executable], Any], message: str
) -> None:
    with pytest.raises(aot.PeltonError, match=rf"{message}.*test_indexing\.py:\d+"):
        call(executable)


def test_contiguous_slices_are_those_of_flow_and_others_are_not() -> None:
    class Slices(aot.CompiledModule):
        def rows(self, x=aot.AbstractTensor(4, 8), i=aot.AbstractIndex):
            return x[i : i + 2]

        def columns(self, x=aot.AbstractTensor(4, 8), i=aot.AbstractIndex):
            return x[:, i : i + 2]

    check_ir(
        aot.export(Slices),
        """
        CHECK: func.func @rows
        CHECK: util.status.check_ok {{.*}}slice before the start of dimension 0
        CHECK: flow.tensor.slice %arg0[%arg1, %c0{{.*}} for %c2{{.*}}, %c8{{.*}}]
        CHECK: func.func @columns
        CHECK: tensor.extract_slice %arg0[0, %arg1] [4, 2] [1, 1]
        """,
    )


# Static indices: what each selects

SHAPE = (5, 4, 3)
STATIC: list[Any] = [
    0, 4, -1, -5, slice(None), slice(1, 3), slice(-2, None), slice(None, -1), slice(3, 1),
    slice(2, 100), slice(-100, 2), slice(5, 5), slice(1, 3, 1), (0, 1, 2), (0, 0), (slice(1, 2), 0),
    (slice(None), slice(0, 4)), (slice(None), -1), (..., 0), (0, ..., 1), (..., slice(1, 2)), ...,
    None, (None, 0), (0, None, slice(1, 3)), (..., None), (slice(None), None, slice(None), None),
    (),
]  # fmt: skip


@pytest.mark.parametrize("index", STATIC, ids=str)
def test_the_plan_of_a_static_index_selects_what_torch_selects(index: Any) -> None:
    eager = torch.arange(60).reshape(SHAPE)
    with tracing(aot.AbstractTensor(*SHAPE)) as trace:
        plan = plan_index(trace.proxy_posargs[0], index)
        assert required(trace) == []
    part = eager
    for axis, dim_slice in enumerate(plan.slices):
        assert isinstance(dim_slice.start, int)
        part = part.narrow(axis, dim_slice.start, int(str(dim_slice.length)))
        assert dim_slice.is_full == (dim_slice.length == SHAPE[axis])
    assert plan.shape is not None
    assert torch.equal(part.reshape([int(str(size)) for size in plan.shape]), eager[index])
    assert plan.is_full == (part.shape == eager.shape)
    assert plan.is_slice == (eager[index].shape == part.shape and None not in plan.torch_index)


@pytest.mark.parametrize(
    "index",
    [
        slice(None, None, 2), slice(1, None, 2), [0, 2], (slice(None), [1]), torch.tensor([1, 0]),
        (0, [1, 2]), ([0, 1], slice(1, 3)), torch.zeros(5, 4, dtype=torch.bool), (..., [0, 2]),
    ],
    ids=str,
)  # fmt: skip
def test_other_indices_are_left_to_torch(index: Any) -> None:
    eager = torch.arange(60).reshape(SHAPE)
    with tracing(aot.AbstractTensor(*SHAPE)) as trace:
        plan = plan_index(trace.proxy_posargs[0], index)
    assert plan.shape is None
    assert len(plan.slices) == 3
    sliced = eager
    for axis, dim_slice in enumerate(plan.slices):
        sliced = sliced.narrow(axis, int(str(dim_slice.start)), int(str(dim_slice.length)))
    assert torch.equal(sliced[plan.torch_index], eager[index])


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (5, r"index 5 is out of range for dimension 0 of <traced float32\[5, 4, 3\]>"),
        (-6, "index -6 is out of range for dimension 0"),
        ((0, 4), "index 4 is out of range for dimension 1"),
        ((0, 0, 0, 0), "an index of 4 entries does not fit"),
        ((slice(None),) * 4, "an index of 4 entries does not fit"),
        ((..., 0, ...), "an index of 1 entries does not fit"),
        (torch.zeros(5, 4, 3, 1, dtype=torch.bool), "an index of 4 entries does not fit"),
    ],
    ids=str,
)
def test_an_index_that_does_not_fit_is_refused(index: Any, message: str) -> None:
    with tracing(aot.AbstractTensor(*SHAPE)) as trace:
        with pytest.raises(aot.ProcedureTraceError, match=message):
            plan_index(trace.proxy_posargs[0], index)


@pytest.mark.parametrize("index", [(), ..., None, (None, ...)], ids=str)
def test_a_tensor_of_rank_zero_has_no_positions(index: Any) -> None:
    with tracing(aot.AbstractTensor()) as trace:
        (x,) = trace.proxy_posargs
        assert shape_of(x[index]) == list(torch.zeros(())[index].shape)
        with pytest.raises(aot.ProcedureTraceError, match="an index of 1 entries does not fit"):
            x[0]


def test_a_dimension_of_size_zero_has_no_positions() -> None:
    with tracing(aot.AbstractTensor(0, 4)) as trace:
        (x,) = trace.proxy_posargs
        assert shape_of(x[:2]) == [0, 4]
        with pytest.raises(aot.ProcedureTraceError, match="index 0 is out of range"):
            x[0]


# Dynamic positions: the checks, and the lengths that are known


def test_a_dynamic_position_is_checked_from_both_ends() -> None:
    with tracing(aot.AbstractTensor(5, 4), aot.AbstractI64) as trace:
        x, i = trace.proxy_posargs
        assert shape_of(x[i]) == [4]
        assert required(trace) == [
            "index below the start of dimension 0 of float32[5, 4]",
            "index beyond the end of dimension 0 of float32[5, 4]",
        ]


@pytest.mark.parametrize(
    ("make", "length"),
    [
        (lambda i, n, x: slice(i, i + 2), 2),
        (lambda i, n, x: slice(i - 1, i + 2), 3),
        (lambda i, n, x: slice(i, i), 0),
        (lambda i, n, x: slice(i, i + x.shape[0]), "size"),
        (lambda i, n, x: slice(i, i + n), "?"),
        (lambda i, n, x: slice(i + 1, i), "?"),
        (lambda i, n, x: slice(i, None), "?"),
        (lambda i, n, x: slice(i, 3), "?"),
    ],
)
def test_the_length_of_a_slice_is_known_from_its_bounds(
    make: Callable[..., slice], length: int | str
) -> None:
    with tracing(aot.AbstractTensor(None, 9), aot.AbstractI64, aot.AbstractI64) as trace:
        x, i, n = trace.proxy_posargs
        (_, found) = plan_index(x, (slice(None), make(i, n, x))).slices
        if length == "size":
            assert found.length.ir_value == x.shape[0].ir_value
        elif length == "?":
            assert not isinstance(found.length, int)
            assert required(trace) == []
        else:
            assert found.length == length
            assert len(required(trace)) == 2


def test_bounds_of_unknown_length_are_clamped_as_in_python() -> None:
    size = 5
    for start, stop in [(0, 9), (-2, 9), (-9, 2), (3, 1), (9, 9), (2, -1)]:
        with tracing(aot.AbstractTensor(size)) as trace:
            (x,) = trace.proxy_posargs
            low, high = scalar(trace, start, "i64"), scalar(trace, stop, "i64")
            (found,) = plan_index(x, slice(low, high)).slices
            expected = range(size)[start:stop]
            position, length = folded(trace, [found.start, found.length])
            assert length == len(expected)
            assert length == 0 or position == expected.start


@pytest.mark.parametrize("bound", [0, 2, -1, 7, -7])
def test_static_bounds_of_a_dynamic_dimension_are_clamped(bound: int) -> None:
    for size in (0, 1, 4):
        for make in (lambda b: slice(b, None), lambda b: slice(None, b)):
            with tracing(aot.AbstractTensor(None)) as trace:
                (x,) = trace.proxy_posargs
                x.set_dim_value(0, scalar(trace, size, "index").ir_value)
                (found,) = plan_index(x, make(bound)).slices
                (length,) = folded(trace, [_traced(trace, found.length)])
                assert length == len(range(size)[make(bound)])


def _traced(trace: ProcedureTrace, size: Any) -> Any:
    return scalar(trace, size, "index") if isinstance(size, int) else size


def test_a_step_takes_static_bounds() -> None:
    with tracing(aot.AbstractTensor(5), aot.AbstractI64) as trace:
        x, i = trace.proxy_posargs
        for wrong in (slice(i, None, 2), slice(None, i, 2), slice(None, None, i)):
            with pytest.raises(aot.ProcedureTraceError, match="slice first, then take the step"):
                plan_index(x, wrong)


def test_a_tensor_is_no_bound_of_a_static_dimension() -> None:
    with tracing(aot.AbstractTensor(5), aot.AbstractTensor(dtype=torch.int64)) as trace:
        x, t = trace.proxy_posargs
        with pytest.raises(aot.ProcedureTraceError, match="index a traced tensor"):
            x[t:]


# Operations of reads and writes


@pytest.mark.parametrize(
    ("index", "operations"),
    [
        (slice(None), []),
        (slice(1, 3), ["flow.tensor.slice"]),
        (0, ["flow.tensor.slice", "flow.tensor.reshape"]),
        (None, ["flow.tensor.reshape"]),
        ((slice(None), 0), ["tensor.extract_slice", "flow.tensor.reshape"]),
    ],
    ids=str,
)
def test_a_read_is_a_slice_and_a_reshape(index: Any, operations: list[str]) -> None:
    with tracing(aot.AbstractTensor(5, 4)) as trace:
        indexing.read(trace.proxy_posargs[0], index)
        assert names_of(trace) == [*operations, "func.func"]


@pytest.mark.parametrize(
    ("index", "value", "operations"),
    [
        (..., 1.5, ["flow.tensor.splat"]),
        (slice(1, 3), 1.5, ["flow.tensor.splat", "flow.tensor.update"]),
        ((slice(None), 0), 2, ["arith.sitofp", "flow.tensor.splat", "tensor.insert_slice"]),
    ],
    ids=str,
)
def test_a_write_of_a_number_is_a_splat_and_an_update(
    index: Any, value: float, operations: list[str]
) -> None:
    with tracing(aot.AbstractTensor(5, 4)) as trace:
        (x,) = trace.proxy_posargs
        result = indexing.write(x, index, value)
        assert [n for n in names_of(trace) if n != "func.func"] == operations
        assert result.ir_type == x.ir_type
        assert x.ir_value == trace.func_op.arguments[0]


def test_a_write_of_a_tensor_of_the_shape_needs_no_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tracing(aot.AbstractTensor(5, 4), aot.AbstractTensor(4)) as trace:
        x, row = trace.proxy_posargs
        monkeypatch.setattr(trace, "call_torch", None)
        indexing.write(x, 2, row)
        assert names_of(trace) == ["flow.tensor.reshape", "flow.tensor.update", "func.func"]


@pytest.mark.parametrize(
    ("shape", "dtype"), [((1,), torch.float32), ((4,), torch.int64), ((), torch.float32)]
)
def test_a_write_of_another_shape_or_dtype_is_converted_by_torch(
    shape: tuple[int, ...], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Any] = []
    with tracing(aot.AbstractTensor(5, 4), aot.AbstractTensor(*shape, dtype=dtype)) as trace:
        x, value = trace.proxy_posargs

        def call_torch(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
            calls.append((function.__name__, *args[1:]))
            return x[0]

        monkeypatch.setattr(trace, "call_torch", call_torch)
        indexing.write(x, 2, value)
    assert calls == [("_fit", torch.float32, (4,))]


def test_a_write_into_a_dynamic_part_is_converted_like_the_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[Any] = []
    with tracing(aot.AbstractTensor(None, 4), aot.AbstractTensor(4)) as trace:
        x, value = trace.proxy_posargs

        def call_torch(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
            calls.append((function.__name__, shape_of(args[1])))
            return args[1]

        monkeypatch.setattr(trace, "call_torch", call_torch)
        indexing.write(x, slice(1, None), value)
    assert calls == [("_fit_like", ["?", 4])]


@pytest.mark.parametrize("shape", [(1, 1, 4), (1, 4), (4,), (1,), ()])
def test_leading_dimensions_of_size_one_may_be_dropped(shape: tuple[int, ...]) -> None:
    value = torch.arange(4.0)[: shape[-1] if shape else 1].reshape(shape)
    expected = torch.zeros(4, dtype=torch.int32)
    expected[:] = value
    assert torch.equal(indexing._fit(value, torch.int32, (4,)), expected)


def test_a_value_that_is_no_tensor_or_number_is_refused() -> None:
    with tracing(aot.AbstractTensor(5, 4)) as trace:
        with pytest.raises(aot.ProcedureTraceError, match="the value assigned to a part of"):
            indexing.write(trace.proxy_posargs[0], 0, "text")


def test_a_part_writes_through_to_its_tensor_and_to_the_tensor_of_that() -> None:
    with tracing(aot.AbstractTensor(5, 4)) as trace:
        (x,) = trace.proxy_posargs
        part = x[1]
        assert part.may_alias == x.may_alias
        part[2:3] = 7
        assert names_of(trace).count("flow.tensor.update") == 2
        assert x.ir_value.owner.name == "flow.tensor.update"


def test_a_dim_slice_is_not_full_unless_it_says_so() -> None:
    assert not DimSlice(0, 4).is_full
