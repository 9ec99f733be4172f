"""Arguments and results of exported programs: structure, names, defaults, constants, aliases."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot, runtime

from ..programs import assert_equals_eager, assert_same, compiled

X, Y = torch.randn(2, 3), torch.randn(2, 3)
Pair = namedtuple("Pair", "first second")


@dataclasses.dataclass
class Sample:
    x: torch.Tensor
    extra: Any = None


def test_nested_containers_cross_both_ways(tmp_path: Path) -> None:
    def program(data: dict, items: list) -> dict:
        return {"sum": data["a"] + items[0], "parts": [items[1][0], (data["a"],)], "none": None}

    args = ({"a": X}, [Y, (X,)])
    assert_equals_eager(compiled(tmp_path, program, args), program, args)


def test_named_tuples_and_dataclasses_cross_both_ways(tmp_path: Path) -> None:
    def program(pair: Pair, sample: Sample) -> Pair:
        return Pair(pair.first + sample.x, Sample(pair.second, sample.extra))

    exe = compiled(tmp_path, program, (Pair(X, Y), Sample(X)))
    result = exe(Pair(X, Y), Sample(Y))
    assert type(result) is Pair
    assert type(result.second) is Sample
    assert result.second.extra is None
    assert_same((result.first, result.second.x), (X + Y, Y))


def test_an_ordered_dict_comes_back_as_one(tmp_path: Path) -> None:
    exe = compiled(tmp_path, lambda x: OrderedDict(b=x, a=x + 1), (X,))
    result = exe(X)
    assert type(result) is OrderedDict
    assert list(result) == ["b", "a"]


def test_keyword_arguments_follow_the_signature_and_not_the_order_of_the_dict(
    tmp_path: Path,
) -> None:
    def program(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return a - 2 * b + 3 * c

    exe = compiled(tmp_path, program, kwargs={"c": X, "b": Y, "a": X + 1})
    assert str(inspect.signature(exe)) == "(a, b, c)"
    assert_same(exe(X, Y, Y), program(X, Y, Y))
    assert_same(exe(c=X, a=Y, b=X), program(Y, X, X))


def test_variadic_parameters_keep_their_names_and_counts(tmp_path: Path) -> None:
    def program(a: torch.Tensor, *rest: torch.Tensor, **named: torch.Tensor) -> torch.Tensor:
        return a + rest[0] * rest[1] - named["z"]

    exe = compiled(tmp_path, program, (X, Y, X), kwargs={"z": Y})
    assert_same(exe(Y, X, X, z=X), program(Y, X, X, z=X))
    with pytest.raises(runtime.SignatureError, match=r"rest expects \(\*, \*\), got tuple of 1"):
        exe(X, Y, z=X)


def test_python_values_are_constants_that_a_call_may_repeat_but_not_change(tmp_path: Path) -> None:
    def program(x: torch.Tensor, scale: float = 2.0, mask: None = None, mode: str = "up") -> Any:
        return x * scale if mode == "up" else x

    exe = compiled(tmp_path, program, (X,))
    assert str(inspect.signature(exe)) == "(x, scale=2.0, mask=None, mode='up')"
    assert_equals_eager(exe, program, (X,), (Y, 2.0), (Y, 2.0, None, "up"))
    with pytest.raises(runtime.SignatureError, match=r"argument scale was fixed to 2.0 at export"):
        exe(X, 3.0)


def test_a_constant_before_a_tensor_becomes_keyword_only(tmp_path: Path) -> None:
    exe = compiled(tmp_path, lambda n, x: x * n, (3, X))
    assert str(inspect.signature(exe)) == "(x, *, n=3)"
    assert_same(exe(Y), Y * 3)


def test_an_unused_argument_stays(tmp_path: Path) -> None:
    exe = compiled(tmp_path, lambda a, unused: a + 1, (X, Y))
    assert str(inspect.signature(exe)) == "(a, unused)"
    assert_same(exe(Y, X), Y + 1)
    with pytest.raises(runtime.SignatureError, match="unused"):
        exe(Y)


def test_inputs_and_views_of_inputs_are_results(tmp_path: Path) -> None:
    def program(a: torch.Tensor, b: torch.Tensor) -> Any:
        return a, b, a, a.t(), a[0], a.view(-1), a.unsqueeze(0)

    assert_equals_eager(compiled(tmp_path, program, (X, Y)), program, (Y, X))


def test_the_same_tensor_as_two_examples_is_two_inputs(tmp_path: Path) -> None:
    exe = compiled(tmp_path, lambda a, b: a - 2 * b, (X, X))
    assert_same(exe(X, Y), X - 2 * Y)
    assert_same(exe(Y, Y), -Y)


def test_constants_and_numbers_are_results(tmp_path: Path) -> None:
    def program(x: torch.Tensor) -> Any:
        tensor = torch.tensor([1.0, 2.0])
        return tensor, 3, 2.5, True, "text", None, x.dim(), x.shape[1], x.numel() / 2

    assert_equals_eager(compiled(tmp_path, program, (X,)), program, (X,))


def test_numbers_that_are_computed_are_python_numbers(tmp_path: Path) -> None:
    def program(x: torch.Tensor) -> Any:
        return x.shape[0], x.shape[0] * 2 + 1, x.sum().item(), (x > 0).sum().item(), x.size(0) / 2

    exe = compiled(tmp_path, program, (X,), dynamic_shapes=({0: "batch"},))
    assert_equals_eager(exe, program, (torch.randn(5, 3),), (torch.randn(1, 3),))


def test_a_function_without_arguments(tmp_path: Path) -> None:
    exe = compiled(tmp_path, lambda: torch.arange(4))
    assert_same(exe(), torch.arange(4))


def test_a_closure_and_a_bound_method_bring_their_tensors(tmp_path: Path) -> None:
    weight = torch.randn(3, 3)
    assert_same(compiled(tmp_path, lambda x: x @ weight, (X,))(Y), Y @ weight, atol=1e-4)
    layer = nn.Linear(3, 4)
    exe = compiled(tmp_path, layer.forward, (X,), external_parameters=False)
    assert_same(exe(Y), layer(Y), atol=1e-4)


def test_an_exported_program_brings_its_own_signature(tmp_path: Path) -> None:
    class Program(nn.Module):
        def forward(self, a: torch.Tensor, data: dict, *, k: torch.Tensor) -> Any:
            return {"o": a + data["p"][0] * k, "n": None, "c": 7, "s": a.shape[0]}

    batch = torch.export.Dim("batch", min=1, max=9)
    shapes = {"a": {0: batch}, "data": {"p": [{0: batch}]}, "k": {0: batch}}
    args, kwargs = (X, {"p": [Y]}), {"k": X}
    program = torch.export.export(Program(), args, kwargs, dynamic_shapes=shapes, strict=True)
    exe = compiled(tmp_path, program)
    tall = torch.randn(7, 3)
    assert_same(exe(tall, {"p": [tall]}, k=tall), Program()(tall, {"p": [tall]}, k=tall))
    with pytest.raises(runtime.SignatureError, match=r"range 1\.\.9"):
        exe(torch.randn(10, 3), {"p": [torch.randn(10, 3)]}, k=torch.randn(10, 3))


def test_a_strict_trace_keeps_the_structure_of_results(tmp_path: Path) -> None:
    def program(x: torch.Tensor, *, scale: float = 2.0) -> dict[str, Any]:
        return {"y": x * scale, "kind": "a", "none": None, "rest": (x, [x.shape[0]])}

    shapes = {"x": {0: "rows"}}
    exe = compiled(tmp_path, program, (X,), dynamic_shapes=shapes, strict_export=True)
    assert_equals_eager(exe, program, (torch.randn(1, 3),), (torch.randn(5, 3),))


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")
def test_what_only_strict_mode_refuses_says_so() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x + sys._getframe(0).f_lineno

    aot.export(program, args=(X,))
    with pytest.raises(aot.ExportError, match=r"not strictly: .*; leave strict mode off"):
        aot.export(program, args=(X,), strict_export=True)


def test_sizes_of_named_tuples_and_dataclasses_are_given_by_name_or_in_order() -> None:
    def program(pair: Pair, sample: Sample) -> torch.Tensor:
        return pair.first + pair.second + sample.x

    rows = {0: "rows"}
    for pair in ((rows, rows), {"first": rows, "second": rows}, Pair(rows, rows)):
        shapes = {"pair": pair, "sample": {"x": rows}}
        out = aot.export(program, args=(Pair(X, Y), Sample(X)), dynamic_shapes=shapes)
        assert str(out.signatures["main"]).count("float32[rows, 3]") == 4
    for entry in ((rows,), rows, "rows", [rows, rows, rows]):
        with pytest.raises(aot.DynamicShapeError, match="pair: dynamic_shapes"):
            aot.export(program, args=(Pair(X, Y), Sample(X)), dynamic_shapes={"pair": entry})


def test_a_change_of_an_argument_stays_inside_and_is_said(tmp_path: Path) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        return x * 2

    with pytest.warns(UserWarning, match="changes argument x in place"):
        out = aot.export(program, args=(X,))
    out.compile(tmp_path / "m.vmfb")
    given = Y.clone()
    assert_same(runtime.load(tmp_path / "m.vmfb")(given), (Y + 1) * 2)
    assert_same(given, Y)


def test_all_forms_of_giving_arguments_are_one(tmp_path: Path) -> None:
    layer = nn.Linear(3, 2).eval()
    texts = {
        str(out.mlir_module)
        for out in (
            aot.export(layer, X),
            aot.export(layer, args=(X,)),
            aot.export(layer, kwargs={"input": X}),
            aot.export(layer, args=[X], kwargs={}),
        )
    }
    assert len(texts) == 1


def test_the_user_model_is_left_as_it_was() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)).eval()
    before = [(dict(vars(module)), set(dir(module))) for module in model.modules()]
    values = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    attributes = [set(vars(tensor)) for tensor in model.parameters()]
    aot.export(model, args=(X,), external_parameters=True)
    assert [(dict(vars(module)), set(dir(module))) for module in model.modules()] == before
    assert [set(vars(tensor)) for tensor in model.parameters()] == attributes
    assert_same(model.state_dict(), OrderedDict(values))
