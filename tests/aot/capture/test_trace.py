"""Traces of functions and modules: results, constants, structure, and what is refused."""

from __future__ import annotations

import threading
import warnings
from typing import Any, NamedTuple

import pytest
import torch
from torch.export import Dim

from pelton import aot
from pelton.aot.capture.arguments import flatten_arguments
from pelton.aot.capture.trace import TRACING_LOCK, Capture, capture, capture_call
from pelton.runtime.call.pytrees import leaf_paths
from pelton.runtime.call.signature import ConstantSpec

X = torch.arange(6.0).reshape(2, 3)


def run(captured: Capture, *inputs: Any) -> Any:
    return captured.program.module()(*inputs)


# Results


class Pair(NamedTuple):
    left: Any
    right: Any


def test_the_leaves_of_a_result_are_flat_and_its_structure_is_stated() -> None:
    captured = capture(lambda x: {"a": [x + 1, None], "b": Pair(x * 2, "text")}, (X,), {})
    kind, pairs = captured.result_tree
    assert kind == "dict" and pairs[0] == ["a", ["list", [0, None]]]
    assert pairs[1][1][0] == "namedtuple" and pairs[1][1][2] == [["left", 1], ["right", 2]]
    assert captured.results == [None, None, ConstantSpec("text")]
    first, second = run(captured, X)
    assert torch.equal(first, X + 1) and torch.equal(second, X * 2)


@pytest.mark.parametrize("value", [True, 3, 0.5, "text"])
def test_constant_results_are_not_computed(value: Any) -> None:
    captured = capture(lambda x: (value, x + 1), (X,), {})
    assert captured.results == [ConstantSpec(value), None]
    assert len(run(captured, X)) == 1


def test_a_size_is_a_result_that_is_computed() -> None:
    captured = capture(lambda x: x.shape[0], (X,), {}, {"x": {0: "n"}})
    assert captured.results == [None]
    assert run(captured, torch.ones(5, 3)) == (5,)


def test_a_result_of_none_has_no_leaves() -> None:
    captured = capture(lambda x: None, (X,), {})
    assert captured.result_tree is None and captured.results == []


def test_a_result_of_another_kind_is_refused() -> None:
    with pytest.raises(aot.ExportError, match=r"result\[1\] is a Generator, which cannot be a"):
        capture(lambda x: [x, torch.Generator()], (X,), {})


# Targets


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.tensor(2.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale

    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.scale * 2


def test_modules_and_their_methods_have_their_parameters_below_a_prefix() -> None:
    module = Scaled()
    for target in (module, module.twice):
        captured = capture(target, (X,), {})
        names = [name.removeprefix(captured.prefix) for name in captured.program.state_dict]
        assert names == ["scale"]
    assert torch.equal(run(captured, X)[0], X * 4)


def test_the_location_is_that_of_the_function() -> None:
    captured = capture(Scaled(), (X,), {})
    line = Scaled.forward.__code__.co_firstlineno
    assert captured.location == f"{__file__}:{line}"


def test_the_mode_of_a_module_is_kept() -> None:
    module = torch.nn.Dropout(0.5).eval()
    captured = capture(module, (X,), {})
    assert torch.equal(run(captured, X)[0], X)
    assert not module.training


def test_constant_arguments_are_built_in() -> None:
    captured = capture(lambda x, factor: x * factor, (X, 3), {})
    assert torch.equal(run(captured, X)[0], X * 3)


def test_strict_mode_gives_the_same_results() -> None:
    captured = capture(Scaled(), (X,), {}, strict=True)
    assert torch.equal(run(captured, X)[0], X * 2)


class Reads(torch.nn.Module):
    """Reads numbers from tensors, which only strict mode traces."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(()))

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, object]:
        y.add_(float(x))
        self.total.add_(float(x))
        return {"n": int(y[0, 0].long()) + 1, "text": "a", "rest": (None, [self.total * 2, 3])}


def test_strict_mode_takes_numbers_that_are_read_from_tensors() -> None:
    with pytest.raises(aot.ExportError, match="depends on the value of a tensor"):
        capture(Reads(), (torch.tensor(2.0), X), {})
    with pytest.warns(UserWarning, match="changes argument y in place"):
        captured = capture(Reads(), (torch.tensor(2.0), X), {}, strict=True)
    paths = leaf_paths(captured.result_tree, "result")
    assert [*paths.values()] == [
        "result['n']", "result['text']", "result['rest'][1][0]", "result['rest'][1][1]"
    ]  # fmt: skip
    constants = [constant and constant.value for constant in captured.results]
    assert constants == [None, "a", None, 3]
    n, total = run(captured, torch.tensor(2.0), torch.full_like(X, 5.0))
    assert n == 8
    assert total.item() == 4.0


def test_what_neither_mode_takes_is_reported_as_without_strict_mode() -> None:
    with pytest.raises(aot.ExportError, match="depends on the value of a tensor") as caught:
        capture(lambda x: x + 1 if x.sum() > 0 else x, (X,), {}, strict=True)
    assert caught.value.location is not None


def test_a_call_traces_arguments_that_are_flat_already() -> None:
    arguments = flatten_arguments(Scaled().forward, (X,), {}, None)
    captured = capture_call(Scaled(), arguments)
    assert captured.arguments is arguments
    assert torch.equal(run(captured, X)[0], X * 2)


# Changed inputs


def test_an_input_that_is_changed_is_told() -> None:
    def changes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        y.add_(1)
        return x + y

    with pytest.warns(UserWarning, match="the program changes argument y in place"):
        captured = capture(changes, (X, X), {})
    assert torch.equal(run(captured, X, X.clone())[0], X * 2 + 1)


def test_an_unchanged_input_gives_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        capture(lambda x: x.clone().add_(1), (X,), {})


# Sizes


def test_a_size_of_one_is_dynamic_like_others() -> None:
    captured = capture(lambda x: x + 1, (torch.ones(1, 3),), {}, {"x": {0: Dim("n", max=8)}})
    assert captured.oblivious
    assert run(captured, torch.ones(4, 3))[0].shape == (4, 3)


def test_a_size_that_the_program_fixes_is_refused() -> None:
    with pytest.raises(aot.DynamicShapeError, match=r"argument x: dimension 0 \('n'\) cannot be"):
        capture(lambda x: x + torch.ones(2, 3), (X,), {}, {"x": {0: "n"}})


# Pure functions


INFO = aot.InputInfo((2, 3), torch.float32)


def test_a_pure_function_takes_specs_and_has_tensors_as_constants() -> None:
    captured = capture(lambda x, y: x + y, (INFO, X), {}, pure=True)
    assert [leaf.path for leaf in captured.arguments.inputs] == ["x"]
    assert torch.equal(run(captured, X)[0], X * 2)


def test_a_pure_function_needs_an_input() -> None:
    with pytest.raises(aot.ExportError, match=r"has no input: give aot.InputInfo"):
        capture(lambda x: x + 1, (X,), {}, pure=True)


def test_a_pure_function_without_parameters_is_allowed() -> None:
    assert torch.equal(run(capture(lambda: X + 1, (), {}, pure=True))[0], X + 1)


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: (x, 3), r"returns tensors, but result\[1\] is 3"),
        (lambda x: [x, "text"], r"but result\[1\] is 'text'; return torch.tensor"),
        (lambda x: None, "but this returns none"),
    ],
)
def test_a_pure_function_returns_tensors(function: Any, message: str) -> None:
    with pytest.raises(aot.ExportError, match=message):
        capture(function, (INFO,), {}, pure=True)


def test_a_pure_function_has_no_side_effects() -> None:
    seen: list[int] = []

    def appends(x: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        return x + 1

    with pytest.raises(aot.ExportError, match="changes closure variable 'seen'"):
        capture(appends, (INFO,), {}, pure=True)


# Errors


def branches(x: torch.Tensor) -> torch.Tensor:
    return x + 1 if x.sum() > 0 else x


def test_control_flow_on_values_is_refused_with_its_line() -> None:
    with pytest.raises(aot.ExportError, match="depends on the value of a tensor") as caught:
        capture(branches, (X,), {})
    assert caught.value.location is not None
    assert caught.value.location.line == branches.__code__.co_firstlineno + 1


def test_an_error_of_the_program_is_stated_with_its_line() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        raise KeyError("absent")

    with pytest.raises(aot.ExportError, match="cannot be traced: KeyError: 'absent'") as caught:
        capture(fails, (X,), {})
    assert caught.value.location.line == fails.__code__.co_firstlineno + 1


def test_what_torch_does_not_implement_is_an_unsupported_operator() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError("no such kernel")

    with pytest.raises(aot.UnsupportedOpError, match="cannot be traced: no such kernel"):
        capture(fails, (X,), {})


def test_a_program_that_only_strict_mode_refuses_names_it() -> None:
    class Opaque:
        def __init__(self, x: torch.Tensor) -> None:
            self.x = x

        def __call__(self) -> torch.Tensor:
            return self.x + threading.get_ident() * 0

    with pytest.raises(aot.ExportError, match="can be traced, but not strictly"):
        capture(lambda x: Opaque(x)(), (X,), {}, strict=True)


def test_a_thread_may_take_the_lock_again() -> None:
    with TRACING_LOCK, TRACING_LOCK:
        taken = []
        other = threading.Thread(target=lambda: taken.append(_try_lock()))
        other.start()
        other.join()
    assert taken == [False]
    assert _try_lock()


def _try_lock() -> bool:
    from torch._dynamo.convert_frame import compile_lock

    if not compile_lock.acquire(blocking=False):
        return False
    compile_lock.release()
    return True


@pytest.mark.filterwarnings("ignore::UserWarning")  # torch's, about quantization
def test_a_tensor_that_torch_cannot_trace_is_named() -> None:
    layer = torch.nn.Module()
    quantized = torch.quantize_per_tensor(X, 0.1, 0, torch.qint8)
    layer.register_buffer("table", quantized)
    model = Scaled()
    model.layer = layer
    with pytest.raises(aot.ExportError, match=r"layer\.table is quantized; register its int_repr"):
        capture(model, (X,), {})


class Tables(torch.nn.Module):
    """Keeps a table for the last shape, and one for each width, beyond a call."""

    def __init__(self) -> None:
        super().__init__()
        self.shape: Any = None
        self.by_width: dict[int, torch.Tensor] = {}
        self.stops = False

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.shape != x.shape:
            self.table, self.shape = torch.arange(x.shape[-1]) + 0.5, x.shape
        self.by_width.setdefault(x.shape[-1], self.table)
        if self.stops and x.sum() > 0:
            return x
        return x * self.table


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("stops", [False, True])
@pytest.mark.filterwarnings("ignore:The tensor attribute", "ignore:While compiling, we found")
def test_a_trace_leaves_nothing_in_the_module(strict: bool, stops: bool) -> None:
    model = Tables()
    model.stops = stops
    for shapes in ({0: "n"}, None):
        if stops:
            with pytest.raises(aot.ExportError, match="depends on the value of a tensor"):
                capture(model, (X,), {}, (shapes,), strict=strict)
        else:
            captured = capture(model, (X,), {}, (shapes,), strict=strict)
            assert torch.equal(run(captured, X)[0], Tables()(X))
        assert model.shape is None and not model.by_width and not hasattr(model, "table")


@pytest.mark.filterwarnings("ignore:The tensor attribute")
def test_a_refused_size_leaves_nothing_in_the_module() -> None:
    model = Tables()
    model(X[:1])
    table, shape = model.table, model.shape
    with pytest.raises(aot.DynamicShapeError):
        capture(model, (X,), {}, ({0: Dim("n", min=1, max=8)},))
    assert model.table is table and model.shape is shape and [*model.by_width] == [3]
