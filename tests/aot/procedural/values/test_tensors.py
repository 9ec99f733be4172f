"""Traced tensors: operators, methods and shapes with torch's meaning, static and dynamic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from iree.compiler.ir import Value

from pelton import aot, runtime
from pelton.aot.procedural.module.procedure_trace import ProcedureTrace
from pelton.aot.procedural.values.tensors import (
    MAY_ALIAS_ANY,
    NO_ALIAS,
    IrImmediateTensor,
    IrTensor,
)
from tests.aot.procedural.traces import names_of, tracing
from tests.programs import assert_same, through_files


def operators(x: Any, y: Any, i: Any, f: Any) -> list[Any]:
    return [
        x + y, 2 - x, x * f, x / (i + 1), x // 2, x % 3, x**2, -x, abs(x), x @ y.T,
        x < y, x >= 1.5, (x == y) | ~(x != y), x + i, x.sum(dim=1), torch.relu(x - 5).mean(),
        torch.nn.functional.linear(x, y), x.T, x.to(torch.float16),
    ]  # fmt: skip


class Tensors(aot.CompiledModule):
    def operators(
        self,
        x=aot.AbstractTensor("n", 4),
        y=aot.AbstractTensor("n", 4),
        i=aot.AbstractI64,
        f=aot.AbstractF32,
    ):
        return operators(x, y, i, f)

    def shapes(self, x=aot.AbstractTensor(None, 4)):
        return [*x.shape, x.size(-1), x.dim(0), x.dim(), x.ndim, x.numel()]


@pytest.fixture(scope="module")
def tensors(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    return through_files(aot.export(Tensors), tmp_path_factory.mktemp("tensors"))


X = torch.arange(20.0).reshape(5, 4)


@pytest.mark.parametrize("rows", [1, 5])
def test_operators_are_those_of_torch(tensors: runtime.Executable, rows: int) -> None:
    x, y = X[:rows], torch.randn(rows, 4)
    assert_same(tensors.operators(x, y, 2, 0.5), operators(x, y, 2, 0.5), rtol=1e-3)


def test_shapes_are_numbers_where_they_are_known(tensors: runtime.Executable) -> None:
    assert tensors.shapes(X) == [5, 4, 4, 5, 2, 2, 20]


def test_one_use_of_an_operator_is_one_function() -> None:
    class Sums(aot.CompiledModule):
        def f(self, x=aot.AbstractTensor(2), y=aot.AbstractTensor(2)):
            return (x + y) + (y + x)

    out = str(aot.export(Sums).mlir_module)
    assert out.count("func.func private @add") == 1
    assert out.count("call @add(") == 3


# One tensor at a time, without a compiler


def test_static_sizes_are_numbers_and_emit_nothing() -> None:
    with tracing(aot.AbstractTensor(0, 1, 7)) as trace:
        (x,) = trace.proxy_posargs
        assert x.shape == (0, 1, 7)
        assert (x.rank, x.ndim, x.dim(), x.dim(2), x.size(-3), x.numel()) == (3, 3, 3, 7, 0, 0)
        assert names_of(trace) == ["func.func"]


def test_a_tensor_of_rank_zero_has_one_element() -> None:
    with tracing(aot.AbstractTensor()) as trace:
        (x,) = trace.proxy_posargs
        assert (x.shape, x.rank, x.numel(), str(x)) == ((), 0, 1, "float32[]")


def test_a_dynamic_size_is_read_once() -> None:
    with tracing(aot.AbstractTensor(None, 4)) as trace:
        (x,) = trace.proxy_posargs
        assert x.shape[0].kind == "index"
        assert x.size(0).ir_value == x.shape[0].ir_value == x.get_dim_value(0)
        assert names_of(trace).count("tensor.dim") == 1
        assert x.get_dim_value(0) in trace.dim_values


@pytest.mark.parametrize("dim", [2, -3, True, "0", None])
def test_a_dimension_that_is_not_there_is_refused(dim: Any) -> None:
    with tracing(aot.AbstractTensor(None, 4)) as trace:
        (x,) = trace.proxy_posargs
        if dim is None:
            assert len(x.size(dim)) == 2
            return
        with pytest.raises(aot.ProcedureTraceError, match=f"has no dimension {dim!r}; it has 2"):
            x.size(dim)


def test_sizes_may_be_set_instead_of_read() -> None:
    with tracing(aot.AbstractTensor(None, 4, None), aot.AbstractIndex, aot.AbstractIndex) as trace:
        x, m, n = trace.proxy_posargs
        x.set_dynamic_dim_values([m.ir_value, n.ir_value])
        assert x.dynamic_dim_values() == [m.ir_value, n.ir_value]
        assert x.known_dim_values() == {0: m.ir_value, 2: n.ir_value}
        assert names_of(trace) == ["func.func"]
        with pytest.raises(aot.ProcedureTraceError, match="has 2 dynamic sizes, got 1"):
            x.set_dynamic_dim_values([m.ir_value])


def test_static_sizes_as_values_come_from_a_cache_where_one_is_given() -> None:
    with tracing(aot.AbstractTensor(4, 4, None)) as trace:
        (x,) = trace.proxy_posargs
        cache: dict[int, Value] = {}
        first, second = (x.get_dim_value(axis, constant_cache=cache) for axis in (0, 1))
        assert first == second == cache[4]
        assert x.get_dim_value(0) != first
        x.get_dim_value(2, constant_cache=cache, resolved_ir_value=x.ir_value)
        assert set(cache) == {2, 4}


def test_a_size_that_is_read_in_a_loop_is_visible_after_it() -> None:
    with tracing(aot.AbstractTensor(None), aot.AbstractI64) as trace:
        x, i = trace.proxy_posargs
        sizes: list[Value] = []
        aot.for_loop(i, lambda n, _: sizes.append(x.get_dim_value(0)))
        trace.emit_return(sizes[0])
        trace.module_builder.finalize_construct()


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize(
    ("dtype", "kind"), [(torch.float32, "f32"), (torch.int8, "i8"), (torch.bool, "i1")]
)
def test_an_item_is_a_scalar(shape: tuple[int, ...], dtype: torch.dtype, kind: str) -> None:
    with tracing(aot.AbstractTensor(*shape, dtype=dtype)) as trace:
        assert trace.proxy_posargs[0].item().kind == kind
        assert names_of(trace) == ["tensor.extract", "func.func"]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn])
def test_an_item_of_a_narrow_float_is_converted_first(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tracing(aot.AbstractTensor(dtype=dtype), aot.AbstractTensor()) as trace:
        x, wide = trace.proxy_posargs
        calls: list[Any] = []
        monkeypatch.setattr(trace, "call_torch", lambda *call: calls.append(call) or wide)
        assert x.item().kind == "f32"
        assert calls == [(torch.Tensor.to, (x, torch.float32))]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.complex64])
def test_there_is_no_item_of_some_types(dtype: torch.dtype) -> None:
    with tracing(aot.AbstractTensor(dtype=dtype)) as trace:
        with pytest.raises(aot.ProcedureTraceError, match=f"no scalars of type {dtype}"):
            trace.proxy_posargs[0].item()


@pytest.mark.parametrize("shape", [(2,), (0,), (1, 3), (None,)])
def test_an_item_needs_one_element(shape: tuple[int | None, ...]) -> None:
    with tracing(aot.AbstractTensor(*shape)) as trace:
        with pytest.raises(aot.ProcedureTraceError, match="takes a tensor of one element"):
            trace.proxy_posargs[0].item()


@pytest.mark.parametrize(
    ("use", "message"),
    [
        (len, r"len\(\) needs a value .* use \.shape\[0\]"),
        (list, "iteration needs a value"),
        (lambda x: 1 in x, "`in` needs a value"),
        (lambda x: x.numpy(), r"\.numpy\(\) needs a value .* or aot\.print it"),
        (lambda x: x.tolist(), r"\.tolist\(\) needs a value"),
    ],
)
def test_elements_are_not_known_to_python(use: Callable[[Any], Any], message: str) -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        with pytest.raises(aot.ProcedureTraceError, match=message):
            use(trace.proxy_posargs[0])


UNARY = (operator.neg, operator.invert, operator.abs)
BINARY = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod,
    operator.pow, operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift,
    operator.rshift, operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne,
)  # fmt: skip


def recorded(trace: ProcedureTrace, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Record the torch functions that are called instead of tracing them."""
    calls: list[tuple[Any, ...]] = []

    def call_torch(function: Any, args: Any, kwargs: Any = None) -> Any:
        calls.append((function, tuple(args), dict(kwargs or {})))
        return args[0]

    monkeypatch.setattr(trace, "call_torch", call_torch)
    return calls


@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_a_unary_operator_is_that_of_torch(
    function: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        (x,) = trace.proxy_posargs
        calls = recorded(trace, monkeypatch)
        function(x)
        assert calls == [(function, (x,), {})]


@pytest.mark.parametrize("function", BINARY, ids=lambda f: f.__name__)
def test_a_binary_operator_is_that_of_torch(
    function: Callable[[Any, Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        (x,) = trace.proxy_posargs
        calls = recorded(trace, monkeypatch)
        function(x, 3)
        ((called, (left, right), _),) = calls
        assert (called, left is x, right) == (function, True, 3)
        if function not in BINARY[-6:]:
            function(3, x)
            ((called, (left, right), _),) = calls[1:]
            assert (called, left, right is x) == (function, 3, True)


def test_methods_properties_and_functions_are_those_of_torch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tracing(aot.AbstractTensor(2, 3)) as trace:
        (x,) = trace.proxy_posargs
        calls = recorded(trace, monkeypatch)
        x.sum(1, keepdim=True)
        torch.relu(x)
        torch.nn.functional.gelu(x, approximate="tanh")
        _ = x.T
        assert [call[0] for call in calls[:3]] == [
            torch.Tensor.sum, torch.relu, torch.nn.functional.gelu,
        ]  # fmt: skip
        assert [call[2] for call in calls] == [{"keepdim": True}, {}, {"approximate": "tanh"}, {}]
        assert calls[0][1] == (x, 1)
        assert torch.equal(calls[3][0](torch.ones(2, 3)), torch.ones(3, 2))


@pytest.mark.parametrize("name", ["nothing", "requires_grad_of", "_private", "shape_"])
def test_what_torch_does_not_have_is_no_attribute(name: str) -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        with pytest.raises(AttributeError):
            getattr(trace.proxy_posargs[0], name)


def test_a_method_in_place_is_its_functional_form_and_an_assignment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tracing(aot.AbstractTensor(2), aot.AbstractTensor(2)) as trace:
        x, y = trace.proxy_posargs
        monkeypatch.setattr(trace, "call_torch", lambda *call: calls.append(call) or y)
        calls: list[Any] = []
        assert x.add_(1, alpha=2) is x
        ((function, args, kwargs),) = calls
        assert (args, kwargs, x.ir_value) == ((x, 1), {"alpha": 2}, y.ir_value)
        eager = torch.ones(2)
        assert torch.equal(function(eager, 1, alpha=2), torch.full((2,), 3.0))
        assert (function.__name__, eager.sum()) == ("add", 2)


@pytest.mark.parametrize(
    ("function", "plain"),
    [
        (operator.iadd, operator.add), (operator.isub, operator.sub), (operator.imul, operator.mul),
        (operator.itruediv, operator.truediv),
    ],
)  # fmt: skip
def test_an_assignment_operator_keeps_the_dtype(
    function: Callable[[Any, Any], Any],
    plain: Callable[[Any, Any], Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tracing(aot.AbstractTensor(2, dtype=torch.int32)) as trace:
        (x,) = trace.proxy_posargs
        calls = recorded(trace, monkeypatch)
        assert function(x, 2) is x
        assert [call[0] for call in calls] == [plain, torch.Tensor.to]
        assert calls[1][1] == (x, torch.int32)


# Assignment


def test_an_assigned_tensor_refers_to_the_new_value_and_its_aliases() -> None:
    with tracing(aot.AbstractTensor(2), aot.AbstractTensor(2)) as trace:
        x, y = trace.proxy_posargs
        fresh = IrImmediateTensor(y.ir_value, y.dtype)
        assert (x.may_alias, fresh.may_alias) == (MAY_ALIAS_ANY, NO_ALIAS)
        x.assign(fresh)
        assert (x.ir_value, x.may_alias) == (y.ir_value, NO_ALIAS)
        x.assign(torch.ones(2))
        assert x.may_alias == MAY_ALIAS_ANY


@pytest.mark.parametrize("value", [1.5, "text", torch.ones(3), torch.ones(2, dtype=torch.int64)])
def test_an_assigned_value_has_the_type_of_the_tensor(value: object) -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        (x,) = trace.proxy_posargs
        with pytest.raises(aot.ProcedureTraceError, match=r"<traced float32\[2\]> "):
            x.assign(value)


def test_a_tensor_of_an_outer_region_is_not_assigned_inside() -> None:
    with tracing(aot.AbstractTensor(2), aot.AbstractI64) as trace:
        x, n = trace.proxy_posargs
        with pytest.raises(aot.ProcedureTraceError, match=r"made outside of this loop .*carry it"):
            aot.for_loop(n, lambda i, _: x.assign(x))


def test_a_base_class_cannot_be_assigned() -> None:
    with tracing(aot.AbstractTensor(2)) as trace:
        (x,) = trace.proxy_posargs
        with pytest.raises(NotImplementedError):
            IrTensor(x.ir_type, x.dtype).assign(x)


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        (aot.AbstractTensor(), "float32[]"), (aot.AbstractTensor(0, None), "float32[0, ?]"),
        (aot.AbstractTensor(2, dtype=torch.bool), "bool[2]"),
        (aot.AbstractTensor("n", dtype=torch.bfloat16), "bfloat16[?]"),
    ],
)  # fmt: skip
def test_the_text_of_a_tensor(type_: aot.AbstractTensor, text: str) -> None:
    with tracing(type_) as trace:
        (x,) = trace.proxy_posargs
        assert (str(x), repr(x)) == (text, f"<traced {text}>")
