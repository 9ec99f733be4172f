"""Operations that a function runs, in regions and in what it calls."""

from __future__ import annotations

from pelton.aot.raising.fx.calls import operations_in, operations_run_by
from tests.aot.raising.texts import source_of

SOURCE = source_of("""
func.func @main(%c: i1) {
  scf.if %c {
    %a = arith.constant 1 : i32
    scf.if %c { %b = arith.constant 2 : i32 }
  }
  func.call @even() : () -> ()
  util.call @util() : () -> ()
  return
}
func.func private @even() { func.call @odd() : () -> () return }
func.func private @odd() { func.call @even() : () -> () return }
util.func private @util() { util.return }
func.func @alone() { return }
""")


def test_operations_in_regions_come_in_order_at_any_depth() -> None:
    names = [op.name for op in operations_in(SOURCE.function("main"))]
    assert names == [
        "scf.if", "arith.constant", "scf.if", "arith.constant", "scf.yield", "scf.yield",
        "func.call", "util.call", "func.return",
    ]  # fmt: skip


def test_functions_that_call_each_other_are_looked_at_once() -> None:
    names = [op.name for op in operations_run_by(SOURCE, SOURCE.function("main"))]
    assert names[:9] == [op.name for op in operations_in(SOURCE.function("main"))]
    assert sorted(names[9:]) == [
        "func.call",
        "func.call",
        "func.return",
        "func.return",
        "util.return",
    ]


def test_a_call_runs_what_it_calls_and_not_itself() -> None:
    (call,) = [op for op in operations_in(SOURCE.function("main")) if op.name == "func.call"]
    names = [op.name for op in operations_run_by(SOURCE, call)]
    assert names == ["func.call", "func.return", "func.call", "func.return"]


def test_an_operation_without_regions_runs_nothing() -> None:
    (op,) = operations_in(SOURCE.function("alone"))
    assert [*operations_run_by(SOURCE, op)] == []
