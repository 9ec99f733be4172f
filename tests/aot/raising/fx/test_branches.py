"""Control-flow graphs as branches and loops: nesting, block arguments, stores, checks."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.raising.fx.branches import run_region
from pelton.aot.spec.errors import PeltonError, UnsupportedOpError
from tests.aot.raising.texts import body, raised, raiser_of, run, targets_of

YES, NO = torch.tensor(True), torch.tensor(False)


def test_one_block_gives_the_values_that_it_returns() -> None:
    raiser = raiser_of(body("%c = arith.constant 3 : i64 return %c, %c : i64, i64", "", "i64, i64"))
    returned = run_region(raiser, raiser.source.function("main").regions[0])
    assert raiser.values(returned) == [3, 3]


def test_the_ways_of_a_condition_give_their_values_to_the_block_where_they_meet() -> None:
    text = body(
        """
          %two = arith.constant 2 : i32
          cf.cond_br %c, ^yes(%a, %b : i32, i32), ^no(%b : i32)
        ^yes(%p: i32, %q: i32):
          %d = arith.subi %p, %q : i32
          cf.br ^end(%d : i32)
        ^no(%r: i32):
          %m = arith.muli %r, %two : i32
          cf.br ^end(%m : i32)
        ^end(%e: i32):
          return %e : i32
        """,
        "%c: i1, %a: i32, %b: i32",
        "i32",
    )
    a, b = torch.tensor(7, dtype=torch.int32), torch.tensor(10, dtype=torch.int32)
    assert run(text, YES, a, b)[0].item() == -3
    assert run(text, NO, a, b)[0].item() == 20


def test_a_way_without_blocks_leads_straight_to_the_end() -> None:
    text = body(
        """
          cf.cond_br %c, ^yes, ^end(%a : i32)
        ^yes:
          %d = arith.addi %a, %a : i32
          cf.br ^end(%d : i32)
        ^end(%e: i32):
          return %e : i32
        """,
        "%c: i1, %a: i32",
        "i32",
    )
    a = torch.tensor(4, dtype=torch.int32)
    assert run(text, YES, a)[0].item() == 8
    assert run(text, NO, a)[0].item() == 4


def test_both_ways_may_lead_straight_to_one_block() -> None:
    text = body(
        "cf.cond_br %c, ^end(%a : i32), ^end(%b : i32) ^end(%e: i32): return %e : i32",
        "%c: i1, %a: i32, %b: i32",
        "i32",
    )
    a, b = torch.tensor(4, dtype=torch.int32), torch.tensor(5, dtype=torch.int32)
    assert run(text, YES, a, b)[0].item() == 4
    assert run(text, NO, a, b)[0].item() == 5


NESTED = body(
    """
      cf.cond_br %c, ^outer, ^end(%a : i32)
    ^outer:
      cf.cond_br %d, ^inner, ^meet(%a : i32)
    ^inner:
      %p = arith.addi %a, %a : i32
      cf.br ^meet(%p : i32)
    ^meet(%q: i32):
      %r = arith.muli %q, %q : i32
      cf.br ^end(%r : i32)
    ^end(%e: i32):
      return %e : i32
    """,
    "%c: i1, %d: i1, %a: i32",
    "i32",
)


@pytest.mark.parametrize(
    ("outer", "inner", "expected"),
    [(True, True, 36), (True, False, 9), (False, True, 3), (False, False, 3)],
)
def test_a_branch_within_a_branch(outer: bool, inner: bool, expected: int) -> None:
    a = torch.tensor(3, dtype=torch.int32)
    assert run(NESTED, torch.tensor(outer), torch.tensor(inner), a)[0].item() == expected


STORING = """
util.global private mutable @__auto.total = 1 : i32
func.func @main(%c: i1, %a: i32) -> i32 {
  cf.cond_br %c, ^yes, ^no
^yes:
  util.global.store %a, @__auto.total : i32
  cf.br ^end
^no:
  cf.br ^end
^end:
  %now = util.global.load @__auto.total : i32
  return %now : i32
}
"""


def test_a_way_that_stores_changes_what_is_loaded_behind_it() -> None:
    a = torch.tensor(4, dtype=torch.int32)
    assert [value.item() for value in run(STORING, YES, a)] == [4, 4]
    assert [value.item() for value in run(STORING, NO, a)] == [1, 1]


@pytest.mark.parametrize(("constant", "expected"), [("true", 6), ("false", 4)])
def test_a_condition_that_is_known_leaves_no_branch(constant: str, expected: int) -> None:
    text = body(
        f"""
          %c = arith.constant {constant}
          %x = arith.constant 4 : i64
          cf.cond_br %c, ^yes, ^end(%x : i64)
        ^yes:
          %two = arith.constant 2 : i64
          %y = arith.addi %x, %two : i64
          cf.br ^end(%y : i64)
        ^end(%e: i64):
          return %e : i64
        """,
        "",
        "i64",
    )
    function = raised(text)
    assert function.graph_module()[0].item() == expected
    assert "cond" not in targets_of(function)


def counting(stays: str, leaves: str, predicate: str) -> str:
    """Return a loop that doubles a value `n` times, with its condition written either way."""
    return body(
        f"""
          %zero = arith.constant 0 : i64
          %one = arith.constant 1 : i64
          cf.br ^head(%zero, %x : i64, tensor<2xi32>)
        ^head(%i: i64, %v: tensor<2xi32>):
          %go = arith.cmpi {predicate}, %i, %n : i64
          cf.cond_br %go, {stays}, {leaves}
        ^body:
          %j = arith.addi %i, %one : i64
          %w = arith.addi %v, %v : tensor<2xi32>
          cf.br ^head(%j, %w : i64, tensor<2xi32>)
        ^end(%e: tensor<2xi32>):
          return %e, %i : tensor<2xi32>, i64
        """,
        "%x: tensor<2xi32>, %n: i64",
        "tensor<2xi32>, i64",
    )


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.parametrize(
    "ways",
    [("^body", "^end(%v : tensor<2xi32>)", "slt"), ("^end(%v : tensor<2xi32>)", "^body", "sge")],
    ids=["while", "until"],
)
def test_blocks_that_lead_back_are_a_loop(ways: tuple[str, str, str], rounds: int) -> None:
    x = torch.tensor([1, -3], dtype=torch.int32)
    doubled, count = run(counting(*ways), x, rounds)
    assert torch.equal(doubled, x * 2**rounds)
    assert count.item() == rounds


def test_a_loop_within_a_branch_within_a_loop_stores() -> None:
    text = """
    util.global private mutable @__auto.total = 0 : i64
    func.func @main(%n: i64, %c: i1) -> i64 {
      %zero = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      cf.br ^outer(%zero : i64)
    ^outer(%i: i64):
      %go = arith.cmpi slt, %i, %n : i64
      cf.cond_br %go, ^choose, ^end
    ^choose:
      cf.cond_br %c, ^inner(%zero : i64), ^next
    ^inner(%k: i64):
      %more = arith.cmpi slt, %k, %i : i64
      cf.cond_br %more, ^store, ^next
    ^store:
      %old = util.global.load @__auto.total : i64
      %new = arith.addi %old, %one : i64
      util.global.store %new, @__auto.total : i64
      %l = arith.addi %k, %one : i64
      cf.br ^inner(%l : i64)
    ^next:
      %j = arith.addi %i, %one : i64
      cf.br ^outer(%j : i64)
    ^end:
      %sum = util.global.load @__auto.total : i64
      return %sum : i64
    }
    """
    assert [value.item() for value in run(text, 4, YES)] == [6, 6]
    assert [value.item() for value in run(text, 4, NO)] == [0, 0]
    assert [value.item() for value in run(text, 1, YES)] == [0, 0]


def test_a_way_that_stops_the_program_is_a_check() -> None:
    text = body(
        """
          cf.cond_br %c, ^fail, ^go
        ^fail:
          %s = arith.constant 9 : i32
          util.status.check_ok %s, "sizes differ"
          cf.br ^go
        ^go:
          return %a : i32
        """,
        "%c: i1, %a: i32",
        "i32",
    )
    function = raised(text)
    a = torch.tensor(4, dtype=torch.int32)
    assert function.graph_module(NO, a)[0].item() == 4
    with pytest.raises(PeltonError, match=r"^sizes differ$"):
        function.graph_module(YES, a)


def test_ways_that_never_meet_are_refused() -> None:
    text = body(
        "cf.cond_br %c, ^yes, ^no ^yes: return %a : i32 ^no: return %b : i32",
        "%c: i1, %a: i32, %b: i32",
        "i32",
    )
    with pytest.raises(UnsupportedOpError, match="not those of branches and loops") as caught:
        raised(text)
    assert caught.value.operators == ("cf.cond_br",)


def test_a_loop_without_a_way_out_is_refused() -> None:
    text = body("cf.br ^again ^again: cf.br ^again", "%a: i32", "i32")
    with pytest.raises(UnsupportedOpError, match="not those of branches and loops"):
        raised(text)


def test_a_refusal_names_the_line_of_the_user() -> None:
    text = """
    func.func @main(%c: i1, %a: i32) -> i32 {
      cf.cond_br %c, ^yes, ^no loc("model.py":12:3)
    ^yes:
      return %a : i32
    ^no:
      return %a : i32
    }
    """
    with pytest.raises(UnsupportedOpError) as caught:
        raised(text)
    assert caught.value.location is not None
    assert (caught.value.location.file, caught.value.location.line) == ("model.py", 12)


@pytest.mark.parametrize("holds", [True, False])
def test_a_way_that_only_shows_needs_no_results(
    holds: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    text = body(
        """
          cf.cond_br %c, ^yes, ^end
        ^yes:
          flow.tensor.trace "seen" = [%a : tensor<1xi32>]
          cf.br ^end
        ^end:
          return %a : tensor<1xi32>
        """,
        "%c: i1, %a: tensor<1xi32>",
        "tensor<1xi32>",
    )
    run(text, torch.tensor(holds), torch.tensor([4], dtype=torch.int32))
    shown = "=== seen ===\ntensor([4], dtype=torch.int32)\n"
    assert capsys.readouterr().err == (shown if holds else "")
