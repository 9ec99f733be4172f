"""Branches and loops of `scf` and of the torch dialect, and checks that stop the program."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton.aot.raising.fx.control_flow import stored_by
from pelton.aot.spec.errors import PeltonError
from tests.aot.raising.texts import body, raised, raiser_of, run, same, targets_of

YES, NO = torch.tensor(True), torch.tensor(False)


def i32(number: int) -> torch.Tensor:
    return torch.tensor(number, dtype=torch.int32)


BRANCH = body(
    """
    %r, %s = scf.if %c -> (i32, index) {
      %d = arith.addi %a, %a : i32
      scf.yield %d, %n : i32, index
    } else {
      %zero = arith.constant 0 : index
      scf.yield %a, %zero : i32, index
    }
    return %r, %s : i32, index
    """,
    "%c: i1, %a: i32, %n: index",
    "i32, index",
)


def test_a_branch_gives_what_its_way_yields() -> None:
    r, s = run(BRANCH, YES, i32(4), 9)
    assert same(r, 8, torch.int32) and same(s, 9, torch.int64)
    r, s = run(BRANCH, NO, i32(4), 9)
    assert same(r, 4, torch.int32) and same(s, 0, torch.int64)


@pytest.mark.parametrize(("constant", "expected"), [("true", 8), ("false", 4)])
def test_a_branch_on_what_is_known_is_no_branch(constant: str, expected: int) -> None:
    text = body(
        f"""
        %c = arith.constant {constant}
        %r = scf.if %c -> i32 {{
          %d = arith.addi %a, %a : i32
          scf.yield %d : i32
        }} else {{
          scf.yield %a : i32
        }}
        return %r : i32
        """,
        "%a: i32",
        "i32",
    )
    assert run(text, i32(4))[0].item() == expected
    assert "cond" not in targets_of(raised(text))


ACTING = """
util.global private mutable @__auto.x = 1 : i64
func.func @main(%c: i1) {
  CONSTANT
  scf.if %c {
    %t = arith.constant dense<7> : tensor<1xi64>
    flow.tensor.trace "x" = [%t : tensor<1xi64>]
    STORE
  }
  return
}
"""


@pytest.mark.parametrize("store", ["", "func.call @set() : () -> ()"], ids=["prints", "stores"])
def test_a_branch_without_results_or_else(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = ACTING.replace("CONSTANT", "").replace("STORE", store) + (
        """func.func private @set() {
          %v = arith.constant 5 : i64
          util.global.store %v, @__auto.x : i64
          return
        }"""
    )
    assert [value.item() for value in run(text, NO)] == ([1] if store else [])
    assert capsys.readouterr().err == ""
    assert [value.item() for value in run(text, YES)] == ([5] if store else [])
    assert capsys.readouterr().err == "=== x ===\ntensor([7])\n"


CHECKED = body(
    """
    scf.if %wrong {
      %s = arith.constant 9 : i32
      util.status.check_ok %s, "too long"
    }
    return %a : i32
    """,
    "%wrong: i1, %a: i32",
    "i32",
)


def test_a_branch_that_stops_is_a_check_of_its_condition() -> None:
    function = raised(CHECKED)
    assert function.graph_module(NO, i32(3))[0].item() == 3
    with pytest.raises(PeltonError, match=r"^too long$"):
        function.graph_module(YES, i32(3))
    assert "require" not in str(raised(CHECKED, effects=False).graph_module.graph)


def known_check(constant: str) -> str:
    return body(
        f"""
        %wrong = arith.constant {constant}
        scf.if %wrong {{
          %s = arith.constant 9 : i32
          util.status.check_ok %s, "always"
        }}
        return %a : i32
        """,
        "%a: i32",
        "i32",
    )


def test_a_check_that_is_known_to_hold_is_none_and_one_that_never_does_stops() -> None:
    assert targets_of(raised(known_check("false"))) == ["aten.clone.default"]
    with pytest.raises(PeltonError, match=r"^always$"):
        run(known_check("true"), i32(1))


@pytest.mark.parametrize("n", [0, 1, 5])
@pytest.mark.parametrize("stride", [1, 2])
def test_a_loop_over_a_range(n: int, stride: int) -> None:
    text = body(
        f"""
        %zero = arith.constant 0 : index
        %stride = arith.constant {stride} : index
        %one = arith.constant 1 : i32
        %r, %v = scf.for %i = %zero to %n step %stride iter_args(%r0 = %one, %v0 = %x)
            -> (i32, tensor<2xf32>) {{
          %k = arith.index_cast %i : index to i32
          %r1 = arith.addi %r0, %k : i32
          %v1 = arith.addf %v0, %x : tensor<2xf32>
          scf.yield %r1, %v1 : i32, tensor<2xf32>
        }}
        return %r, %v : i32, tensor<2xf32>
        """,
        "%x: tensor<2xf32>, %n: index",
        "i32, tensor<2xf32>",
    )
    r, v = run(text, torch.tensor([1.0, 2.0]), n)
    rounds = range(0, n, stride)
    assert same(r, 1 + sum(rounds), torch.int32)
    assert v.tolist() == [1.0 * (1 + len(rounds)), 2.0 * (1 + len(rounds))]


def test_a_loop_over_a_range_without_results_stores() -> None:
    text = """
    util.global private mutable @__auto.x = 1 : i64
    func.func @main(%n: index) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      scf.for %i = %zero to %n step %one {
        %a = util.global.load @__auto.x : i64
        %b = arith.addi %a, %a : i64
        util.global.store %b, @__auto.x : i64
      }
      return
    }
    """
    assert [run(text, n)[0].item() for n in (0, 1, 4)] == [1, 2, 16]


@pytest.mark.parametrize("limit", [0, 1, 100])
def test_a_loop_while_a_condition_holds_forwards_other_values_than_it_carries(limit: int) -> None:
    text = body(
        """
        %one = arith.constant 1 : i32
        %r:2 = scf.while (%a = %one) : (i32) -> (i32, i32) {
          %go = arith.cmpi slt, %a, %limit : i32
          %half = arith.addi %a, %one : i32
          scf.condition(%go) %a, %half : i32, i32
        } do {
        ^bb0(%b: i32, %c: i32):
          %twice = arith.addi %c, %c : i32
          %d = arith.subi %twice, %b : i32
          scf.yield %d : i32
        }
        return %r#0, %r#1 : i32, i32
        """,
        "%limit: i32",
        "i32, i32",
    )
    value = 1
    while value < limit:
        value = 2 * (value + 1) - value
    assert [found.item() for found in run(text, i32(limit))] == [value, value + 1]


def test_a_branch_of_torch_takes_numbers_and_tensors() -> None:
    text = body(
        """
        %c = torch.aten.Bool.Tensor %x : !torch.vtensor<[],i1> -> !torch.bool
        %one = torch.constant.int 1
        %two = torch.constant.int 2
        %r, %n = torch.prim.If %c -> (!torch.vtensor<[2],f32>, !torch.int) {
          torch.prim.If.yield %y, %one : !torch.vtensor<[2],f32>, !torch.int
        } else {
          %z = torch.aten.neg %y : !torch.vtensor<[2],f32> -> !torch.vtensor<[2],f32>
          torch.prim.If.yield %z, %two : !torch.vtensor<[2],f32>, !torch.int
        }
        %s = torch.aten.mul.Scalar %r, %n
          : !torch.vtensor<[2],f32>, !torch.int -> !torch.vtensor<[2],f32>
        return %s : !torch.vtensor<[2],f32>
        """,
        "%x: !torch.vtensor<[],i1>, %y: !torch.vtensor<[2],f32>",
        "!torch.vtensor<[2],f32>",
    )
    y = torch.tensor([1.0, 2.0])
    assert run(text, YES, y)[0].tolist() == [1, 2]
    assert run(text, NO, y)[0].tolist() == [-2, -4]


def torch_loop(trips: str, going: str) -> str:
    return body(
        f"""
        %trips = {trips}
        %going = torch.constant.bool {going}
        %one = torch.constant.int 1
        %limit = torch.constant.float 100.0
        %r = torch.prim.Loop %trips, %going, init(%x) {{
        ^bb0(%i: !torch.int, %v: !torch.vtensor<[],f32>):
          %w = torch.aten.add.Scalar %v, %i, %one
            : !torch.vtensor<[],f32>, !torch.int, !torch.int -> !torch.vtensor<[],f32>
          %u = torch.aten.add.Scalar %w, %one, %one
            : !torch.vtensor<[],f32>, !torch.int, !torch.int -> !torch.vtensor<[],f32>
          %c = torch.aten.lt.Scalar %u, %limit
            : !torch.vtensor<[],f32>, !torch.float -> !torch.vtensor<[],i1>
          %go = torch.aten.Bool.Tensor %c : !torch.vtensor<[],i1> -> !torch.bool
          torch.prim.Loop.condition %go, iter(%u : !torch.vtensor<[],f32>)
        }} : (!torch.int, !torch.bool, !torch.vtensor<[],f32>) -> !torch.vtensor<[],f32>
        return %r : !torch.vtensor<[],f32>
        """,
        "%x: !torch.vtensor<[],f32>",
        "!torch.vtensor<[],f32>",
    )


def looped(trips: int, going: bool, value: float) -> float:
    for i in range(trips):
        if not going:
            break
        value = value + i + 1
        going = value < 100
    return value


@pytest.mark.parametrize("going", [True, False])
@pytest.mark.parametrize("trips", [0, 1, 3, 2**63 - 1])
def test_a_loop_of_torch_ends_after_its_rounds_or_when_its_condition_fails(
    trips: int, going: bool
) -> None:
    text = torch_loop(f"torch.constant.int {trips}", str(going).lower())
    expected = looped(min(trips, 1000), going, 0.5)
    assert run(text, torch.tensor(0.5))[0].item() == expected


def test_what_regions_and_callees_store_is_found_once() -> None:
    raiser = raiser_of("""
    util.global private mutable @__auto.a = 1 : i64
    util.global private mutable @__auto.b = 1 : i64
    func.func @main(%c: i1, %x: i64) {
      scf.if %c {
        util.global.store %x, @__auto.b : i64
        func.call @other(%x) : (i64) -> ()
      }
      util.global.store %x, @__auto.b : i64
      %unused = util.global.load @__auto.a : i64
      return
    }
    func.func private @other(%x: i64) { util.global.store %x, @__auto.a : i64 return }
    """)
    block = raiser.source.function("main").regions[0].blocks[0]
    ops: list[Any] = [view.operation for view in block.operations]
    assert [item.name for item in stored_by(raiser, ops)] == ["b", "a"]
    assert stored_by(raiser, ops[2:]) == []
