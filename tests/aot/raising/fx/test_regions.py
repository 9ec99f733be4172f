"""Branches and loops in graphs: captures, results that alias, and the globals that they store."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import GraphModule, Interpreter, Node
from torch.utils._pytree import tree_leaves

from pelton.aot.raising.fx.raiser import Raiser
from pelton.aot.raising.fx.regions import Loop, choose
from pelton.aot.raising.fx.scope import dtype_of
from tests.aot.raising.texts import raiser_of

aten = torch.ops.aten

STATE = """
util.global private mutable @__auto.total = dense<0.0> : tensor<2xf32>
util.global private mutable @__auto.calls = dense<0> : tensor<i64>
"""
X, Y = torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0])
YES, NO = torch.tensor(True), torch.tensor(False)


def inputs(raiser: Raiser, *names: str, dtype: torch.dtype = torch.float32) -> list[Node]:
    return [raiser.root.placeholder(name, dtype) for name in names]


def condition(raiser: Raiser) -> Node:
    return raiser.root.placeholder("condition", torch.bool)


def double(raiser: Raiser, value: Node) -> Node:
    return raiser.emit(aten.mul.Scalar, value, 2, dtype=dtype_of(value))


def finish(raiser: Raiser, *outputs: Node) -> GraphModule:
    return raiser.root.finish(tuple(outputs))


def items(raiser: Raiser, *names: str) -> list[Any]:
    return [raiser.source.globals[f"__auto.{name}"] for name in names]


class _Watched(Interpreter):
    """Notes the addresses of what each branch or loop is given and, for branches, gives."""

    found: list[list[int]]

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        result = super().call_function(target, args, kwargs)
        name = getattr(target, "__name__", "")
        if name in ("cond", "while_loop"):
            given = [leaf for leaf in tree_leaves(args[-2:]) if isinstance(leaf, torch.Tensor)]
            given += result if name == "cond" else ()
            self.found.append([tensor.data_ptr() for tensor in given])
        return result


def memories_of_regions(module: GraphModule, *args: Any) -> list[list[int]]:
    """Return the addresses of what branches and loops take and give; each must be of its own."""
    watched = _Watched(module)
    watched.found = []
    watched.run(*args)
    for addresses in watched.found:
        assert len({*addresses}) == len(addresses)
    return watched.found


def test_branches_take_what_either_of_them_uses() -> None:
    raiser = raiser_of()
    x, y = inputs(raiser, "x", "y")
    (chosen,) = choose(
        raiser, condition(raiser), [lambda: [double(raiser, y)], lambda: [double(raiser, x)]], []
    )
    module = finish(raiser, chosen)
    assert module(X, Y, YES)[0].tolist() == [20, 40]
    assert module(X, Y, NO)[0].tolist() == [2, 4]


def test_results_have_the_types_that_the_branches_give() -> None:
    raiser = raiser_of()
    (x,) = inputs(raiser, "x")

    def branch() -> list[Node]:
        return [raiser.convert(x, torch.int64), double(raiser, x)]

    found = choose(raiser, condition(raiser), [branch, branch], [])
    assert [dtype_of(node) for node in found] == [torch.int64, torch.float32]


def test_a_branch_that_gives_its_inputs_and_one_value_twice_shares_no_memory() -> None:
    raiser = raiser_of()
    (x,) = inputs(raiser, "x")
    viewed = raiser.emit(aten.reshape.default, x, [2], dtype=torch.float32)

    def other() -> list[Node]:
        doubled = double(raiser, viewed)
        return [doubled, doubled]

    first, second = choose(raiser, condition(raiser), [lambda: [x, viewed], other], [])
    module = finish(raiser, first, second)
    assert [part.tolist() for part in module(X, YES)] == [[1, 2], [1, 2]]
    assert [part.tolist() for part in module(X, NO)] == [[2, 4], [2, 4]]
    assert memories_of_regions(module, X, YES) and memories_of_regions(module, X, NO)


def test_a_store_in_one_branch_leaves_the_global_in_the_other() -> None:
    raiser = raiser_of(STATE)
    (x,) = inputs(raiser, "x")
    (total,) = items(raiser, "total")

    def stores() -> list[Node]:
        raiser.store(total, x)
        return []

    assert choose(raiser, condition(raiser), [stores, lambda: []], [total]) == []
    module = finish(raiser, raiser.current(total))
    assert module(X, YES, Y)[0].tolist() == [1, 2]
    assert module(X, NO, Y)[0].tolist() == [10, 20]


def test_results_and_stores_are_not_mixed_up() -> None:
    raiser = raiser_of(STATE)
    (x,) = inputs(raiser, "x")
    total, calls = items(raiser, "total", "calls")

    def stores() -> list[Node]:
        raiser.store(calls, 7)
        raiser.store(total, double(raiser, x))
        return [x]

    (result,) = choose(raiser, condition(raiser), [stores, lambda: [x]], [total, calls])
    module = finish(raiser, result, raiser.current(total), raiser.current(calls))
    values = {"x": X, "condition": YES, "state_total": Y, "state_calls": torch.tensor(1)}
    names = [node.name for node in module.graph.nodes if node.op == "placeholder"]
    assert [part.tolist() for part in module(*(values[name] for name in names))] == [
        [1, 2], [2, 4], 7,
    ]  # fmt: skip


def test_branches_without_results_stay_for_what_they_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    raiser = raiser_of()
    (x,) = inputs(raiser, "x")

    def shows() -> list[Node]:
        raiser.emit_effect(print, "shown", x)
        return []

    assert choose(raiser, condition(raiser), [shows, lambda: []], []) == []
    module = finish(raiser)
    module(X, NO)
    assert capsys.readouterr().out == ""
    module(X, YES)
    assert capsys.readouterr().out == "shown tensor([1., 2.])\n"


def test_a_branch_within_a_branch_sees_the_outermost_values() -> None:
    raiser = raiser_of()
    x, y = inputs(raiser, "x", "y")
    outer, inner = inputs(raiser, "outer", "inner", dtype=torch.bool)

    def nested() -> list[Node]:
        return choose(raiser, inner, [lambda: [double(raiser, y)], lambda: [y]], [])

    (chosen,) = choose(raiser, outer, [nested, lambda: [x]], [])
    module = finish(raiser, chosen)
    assert module(X, Y, YES, YES)[0].tolist() == [20, 40]
    assert module(X, Y, YES, NO)[0].tolist() == [10, 20]
    assert module(X, Y, NO, YES)[0].tolist() == [1, 2]


def counted(raiser: Raiser, limit: int, *values: Node, body: Any) -> list[Node]:
    """Return the last values of a loop of so many rounds."""

    def holds(carried: Any) -> Node:
        return raiser.emit(aten.lt.Scalar, carried[0], limit, dtype=torch.bool)

    def following(carried: Any) -> list[Node]:
        number = raiser.emit(aten.add.Scalar, carried[0], 1, dtype=torch.int64)
        return [number, *body(carried[1:])]

    start = raiser.as_tensor(0, torch.int64)
    return Loop([start, *values], [], holds, following).emit(raiser)[1:]


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_a_loop_runs_while_its_condition_holds(rounds: int) -> None:
    raiser = raiser_of()
    (x,) = inputs(raiser, "x")
    (last,) = counted(raiser, rounds, x, body=lambda carried: [double(raiser, carried[0])])
    assert finish(raiser, last)(X)[0].tolist() == [2.0**rounds, 2.0 ** (rounds + 1)]


def test_values_that_a_loop_exchanges_are_not_mixed_up() -> None:
    raiser = raiser_of()
    x, y = inputs(raiser, "x", "y")
    last = counted(raiser, 3, x, y, body=lambda carried: [carried[1], carried[0]])
    assert [part.tolist() for part in finish(raiser, *last)(X, Y)] == [[10, 20], [1, 2]]


def test_a_loop_over_aliases_of_what_it_captures_shares_no_memory() -> None:
    raiser = raiser_of()
    (x,) = inputs(raiser, "x")

    def body(carried: Any) -> list[Node]:
        total = raiser.emit(aten.add.Tensor, carried[0], x, dtype=torch.float32)
        return [total, carried[1]]

    last = counted(raiser, 2, x, x, body=body)
    module = finish(raiser, *last)
    assert [part.tolist() for part in module(X)] == [[3, 6], [1, 2]]
    assert memories_of_regions(module, X)


def test_numbers_of_a_loop_become_tensors_of_the_carried_type() -> None:
    raiser = raiser_of()
    (last,) = counted(raiser, 1, raiser.as_tensor(3, torch.int8), body=lambda carried: [5])
    (found,) = finish(raiser, last)()
    assert found.dtype is torch.int8
    assert found.item() == 5


def test_a_loop_carries_the_globals_that_it_stores() -> None:
    raiser = raiser_of(STATE)
    (calls,) = items(raiser, "calls")

    def body(carried: Any) -> list[Node]:
        grown = raiser.emit(aten.add.Scalar, raiser.current(calls), 1, dtype=torch.int64)
        raiser.store(calls, grown)
        return [grown]

    def holds(carried: Any) -> Node:
        raiser.store(calls, -5)  # is forgotten
        return raiser.emit(aten.lt.Scalar, carried[0], 4, dtype=torch.bool)

    start = raiser.as_tensor(0, torch.int64)
    (last,) = Loop([start], [calls], holds, body).emit(raiser)
    module = finish(raiser, last, raiser.current(calls))
    assert [part.item() for part in module(torch.tensor(2))] == [4, 4]


def test_a_condition_may_be_a_python_bool() -> None:
    raiser = raiser_of()
    (x,) = inputs(raiser, "x")
    (last,) = Loop([x], [], lambda carried: False, lambda carried: carried).emit(raiser)
    assert finish(raiser, last)(X)[0].tolist() == [1, 2]
