"""Mistakes in procedures: each is an error with the procedure, the user's line, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot

NET = nn.Linear(4, 2)
LEAKED: list[Any] = []
X = aot.AbstractTensor(2, 4)


class Other(aot.CompiledModule):
    value = aot.export_global(torch.zeros(2), mutable=True)

    def leak(self):
        LEAKED.append(self.value)


def exported(body: Callable[..., Any], **members: Any) -> None:
    """Export a class with one procedure `f(self, x, i)`, and other members."""

    class Case(aot.CompiledModule):
        constant = aot.export_global(torch.zeros(2, 4))
        state = aot.export_global(aot.AbstractTensor(2, 4), mutable=True)
        number = aot.export_global(aot.AbstractI32, mutable=True)
        tree = aot.export_global_tree({"a": torch.zeros(2), "b": [torch.zeros(2)]}, mutable=True)
        params = aot.export_parameters(NET)
        step = aot.jittable(lambda x: x + 1)

        def f(self, x=X, i=aot.AbstractI64):
            return body(self, x, i)

        def g(self, x=X, n=aot.AbstractI32):
            return x

    case = aot.CompiledModule.create_from_dict("Case", {**_members(Case), **members})
    aot.export(case)


def _members(cls: type) -> dict[str, Any]:
    return {name: value for name, value in vars(cls).items() if not name.startswith("_")}


def leak_from_loop(self: Any, x: Any, i: Any) -> Any:
    kept: list[Any] = []
    aot.for_loop(i, lambda n, x: kept.append(x) or x + 1, x)
    return kept[0] + 1


def change_in_loop(self: Any, x: Any, i: Any) -> None:
    y = x + 0
    aot.for_loop(i, lambda n, _: y.add_(1) and None)


BOOL = r"known only when the program runs .*use aot\.cond or aot\.while_loop"

CASES: dict[str, tuple[Callable[..., Any], str]] = {
    "if": (lambda s, x, i: 1 if i > 0 else 2, BOOL),
    "while": (lambda s, x, i: bool(x), BOOL),
    "and": (lambda s, x, i: (i > 0) and (i < 2), BOOL),
    "int": (lambda s, x, i: int(i), r"int\(\) needs a value .*\.to\(torch\.int64\)"),
    "float": (lambda s, x, i: float(x), r"float\(\) needs a value"),
    "range": (lambda s, x, i: range(i), r"use aot\.for_loop"),
    "len": (lambda s, x, i: len(x), r"len\(\) needs a value .*\.shape\[0\]"),
    "iteration": (lambda s, x, i: list(x), r"iteration needs a value .*aot\.for_loop"),
    "in": (lambda s, x, i: 1 in x, r"`in` needs a value"),
    "tolist": (lambda s, x, i: x.tolist(), r"\.tolist\(\) needs a value"),
    "immutable": (
        lambda s, x, i: setattr(s, "constant", x),
        "self.constant is immutable .* declare it with mutable=True",
    ),
    "immutable part": (
        lambda s, x, i: s.constant.__setitem__(0, 1.0),
        "self.constant is immutable",
    ),
    "store shape": (
        lambda s, x, i: setattr(s, "state", x[:1]),
        r"self\.state expects float32\[2, 4\], got float32\[1, 4\]",
    ),
    "store dtype": (
        lambda s, x, i: setattr(s, "state", x.to(torch.float64)),
        r"self\.state expects float32\[2, 4\], got float64\[2, 4\]",
    ),
    "store number": (lambda s, x, i: setattr(s, "state", 1.0), r"fill a tensor with"),
    "store kind": (lambda s, x, i: setattr(s, "number", i), r"takes i32, got <traced i64>.*\.to\("),
    "store float": (lambda s, x, i: setattr(s, "number", 1.5), r"takes i32, got 1\.5"),
    "store keys": (
        lambda s, x, i: setattr(s, "tree", {"a": x[0]}),
        r"self\.tree is a dict with the keys \['a', 'b'\], got a dict with the keys \['a'\]",
    ),
    "store length": (
        lambda s, x, i: setattr(s, "tree", {"a": x[0, :2], "b": []}),
        r"self\.tree\['b'\] has 1 entries, got a list of 0 entries",
    ),
    "new attribute": (
        lambda s, x, i: setattr(s, "stat", x),
        r"self\.stat cannot be assigned.*export_global.*did you mean self\.state\?",
    ),
    "misspelt": (
        lambda s, x, i: s.parms,
        r"self\.parms is not .*mean self\.params",
    ),
    "missing key": (lambda s, x, i: s.params["wieght"], r"no 'wieght'; it has: 'weight', 'bias'"),
    "other module": (
        lambda s, x, i: LEAKED[0] + 1,
        r"traced value of leak\(\) and cannot be used outside of it",
    ),
    "leaves loop": (leak_from_loop, r"made in a loop body or branch that has ended"),
    "changes outer": (change_in_loop, r"made outside of this loop body .*carry it"),
    "arguments": (lambda s, x, i: s.g(x, i, 1), r"calling g\(\): too many positional arguments"),
    "missing": (lambda s, x, i: s.g(x), r"calling g\(\): argument n is missing"),
    "rank": (
        lambda s, x, i: s.g(x[0], 1),
        r"argument x of g\(\) expects float32\[2, 4\], got float32\[4\]",
    ),
    "kind": (lambda s, x, i: s.g(x, 1.5), r"argument n of g\(\) takes i32, got 1\.5"),
    "recursion": (lambda s, x, i: s.f(x, i), r"f\(\) calls itself"),
    "result": (lambda s, x, i: {"a": object()}, r"a result is a object .*cannot be returned"),
    "torch": (lambda s, x, i: x @ x, r"calling matmul: .*"),
    "index": (lambda s, x, i: x[0, 5], r"index 5 is out of range for dimension 1"),
    "indices": (lambda s, x, i: x[0, 0, 0], r"an index of 3 entries does not fit"),
    "reshape": (
        lambda s, x, i: aot.IREE.tensor_reshape(x, 3, 3),
        r"float32\[2, 4\] cannot be reshaped to \[3, 3\]",
    ),
    "slice": (lambda s, x, i: aot.IREE.tensor_slice(x, 0), r"takes 2 indices, got 1"),
    "slice range": (
        lambda s, x, i: aot.IREE.tensor_slice(x, (1, 2), 0),
        r"\[1, 3\) is out of range for dimension 0",
    ),
    "update": (lambda s, x, i: aot.IREE.tensor_update(x, x, 0), r"takes 2 start indices, got 1"),
    "dim": (lambda s, x, i: aot.IREE.tensor_dim(x, 2), r"has no dimension 2; it has 2"),
    "cond pred": (lambda s, x, i: aot.cond(i, lambda: 1, lambda: 2), r"aot\.cond takes a bool"),
    "cond tree": (
        lambda s, x, i: aot.cond(i > 0, lambda: (x, 1), lambda: x),
        r"branches of aot\.cond return \(\*, \*\) and \*",
    ),
    "cond type": (
        lambda s, x, i: aot.cond(i > 0, lambda: x, lambda: x[0]),
        r"must be of one type",
    ),
    "loop tree": (
        lambda s, x, i: aot.for_loop(i, lambda n, c: None, x),
        r"loop body returns None, but takes \*",
    ),
    "loop type": (
        lambda s, x, i: aot.for_loop(i, lambda n, c: c[:1], x),
        r"carry is float32\[1, 4\], but must be tensor<2x4xf32>.*must be dynamic from the start",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_mistake_names_procedure_line_and_remedy(case: str) -> None:
    LEAKED.clear()
    aot.export(Other)
    body, message = CASES[case]
    with pytest.raises((aot.ExportError, KeyError)) as caught:
        exported(body)
    assert re.search(message, str(caught.value)), str(caught.value)
    if isinstance(caught.value, aot.ExportError):
        assert "test_errors.py:" in str(caught.value)


def declared(**members: Any) -> None:
    aot.CompiledModule.create_from_dict("Case", members)


def no_default(self, x):
    return x


def variadic(self, *x):
    return x


def class_default(self, x=aot.AbstractTensor):
    return x


def tensor_default(self, x=(torch.zeros(2),)):
    return x


def no_self():
    return 1


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (no_default, r"Case\.f\(\): argument 'x' has no default; give its abstract type"),
        (variadic, r"\*x cannot be exported"),
        (class_default, r"the default of x is the class AbstractTensor; write AbstractTensor\("),
        (tensor_default, r"the default of x\[0\] is a tensor; give its abstract type"),
        (no_self, r"takes no self"),
    ],
)
def test_a_wrong_declaration_is_refused_when_the_class_is_made(function: Any, message: str) -> None:
    with pytest.raises(aot.ExportError, match=rf"{message}.*test_errors\.py:\d+"):
        declared(f=function)


def test_wrong_abstract_types_and_globals() -> None:
    with pytest.raises(aot.ExportError, match=r"AbstractTensor\(3, 2\), not AbstractTensor\(\(3,"):
        aot.AbstractTensor((3, 2))  # type: ignore[arg-type]
    with pytest.raises(aot.ExportError, match=r"a number, None or a name, not 2\.5"):
        aot.AbstractTensor(2.5)  # type: ignore[arg-type]
    with pytest.raises(aot.ExportError, match="mutable=True"):
        aot.export_global(aot.AbstractTensor(2), uninitialized=True)
    with pytest.raises(aot.ExportError, match="external=True"):
        aot.export_global(torch.zeros(2), mutable=True, external=True, uninitialized=True)
    with pytest.raises(aot.ExportError, match="has no abstract type"):
        aot.abstractify({"a": object()})


def test_one_name_for_two_globals_and_dynamic_globals() -> None:
    tree = {"a.b": torch.zeros(2), "a": {"b": torch.zeros(2)}}
    with pytest.raises(aot.ExportError, match=r"twice exports the name 'a\.b' twice"):
        aot.export(
            aot.CompiledModule.create_from_dict("Case", {"twice": aot.export_global_tree(tree)})
        )
    with pytest.raises(aot.ExportError, match="dynamic shaped tensor"):
        dynamic = aot.export_global(aot.AbstractTensor(None), mutable=True)
        aot.export(aot.CompiledModule.create_from_dict("Case", {"x": dynamic}))


def test_emitters_outside_of_procedures_say_so() -> None:
    with pytest.raises(aot.ProcedureTraceError, match="no procedure is being traced"):
        aot.IREE.tensor_empty(2)


def test_a_value_kept_after_export_says_whose_it_is() -> None:
    LEAKED.clear()
    aot.export(Other)
    with pytest.raises(aot.ProcedureTraceError, match=r"traced value of leak\(\)"):
        LEAKED[0] + 1


def test_export_takes_no_arguments_for_a_class() -> None:
    with pytest.raises(aot.ExportError, match="export it without args, kwargs and function_name"):
        aot.export(Other, args=(torch.zeros(2),))
