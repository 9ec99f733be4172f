"""Loads and stores of globals, and calls, inlined into the graph of the caller."""

from __future__ import annotations

import torch

from tests.aot.raising.texts import raised, run, same, targets_of

TWICE = """
util.global private mutable @__auto.calls = 0 : i64
func.func @main(%x: i64) -> (i64, i64, i64) {
  %a = func.call @count(%x) : (i64) -> i64
  %b = func.call @count(%a) : (i64) -> i64
  %now = util.global.load @__auto.calls : i64
  return %a, %b, %now : i64, i64, i64
}
func.func private @count(%x: i64) -> i64 {
  %old = util.global.load @__auto.calls : i64
  %new = arith.addi %old, %x : i64
  util.global.store %new, @__auto.calls : i64
  return %new : i64
}
"""


def test_a_function_called_twice_stores_twice() -> None:
    assert [value.item() for value in run(TWICE, 3)] == [3, 6, 6, 6]


def test_a_load_behind_a_store_sees_it_and_one_before_does_not() -> None:
    text = """
    util.global private mutable @__auto.odd {pelton.dtype = "bool"} = dense<[0, 1]> : tensor<2xi8>
    func.func @main(%x: tensor<2xi8>) -> (tensor<2xi8>, tensor<2xi8>) {
      %before = util.global.load @__auto.odd : tensor<2xi8>
      util.global.store %x, @__auto.odd : tensor<2xi8>
      %after = util.global.load @__auto.odd : tensor<2xi8>
      return %before, %after : tensor<2xi8>, tensor<2xi8>
    }
    """
    before, after, state = run(text, torch.tensor([1, 0], dtype=torch.int8))
    assert same(before, [0, 1], torch.int8)
    assert same(after, [1, 0], torch.int8)
    assert same(state, [True, False], torch.bool)


def test_a_callee_of_several_blocks_gives_its_results() -> None:
    text = """
    func.func @main(%c: i1, %x: i32) -> (i32, i32) {
      %a, %b = func.call @swap(%c, %x) : (i1, i32) -> (i32, i32)
      return %a, %b : i32, i32
    }
    func.func private @swap(%c: i1, %x: i32) -> (i32, i32) {
      %one = arith.constant 1 : i32
      cf.cond_br %c, ^end(%x, %one : i32, i32), ^end(%one, %x : i32, i32)
    ^end(%a: i32, %b: i32):
      return %a, %b : i32, i32
    }
    """
    x = torch.tensor(9, dtype=torch.int32)
    assert [value.item() for value in run(text, torch.tensor(True), x)] == [9, 1]
    assert [value.item() for value in run(text, torch.tensor(False), x)] == [1, 9]


def test_a_callee_without_results() -> None:
    text = """
    util.global private mutable @__auto.x = 0 : i64
    func.func @main() { func.call @set() : () -> () return }
    func.func private @set() {
      %c = arith.constant 8 : i64
      util.global.store %c, @__auto.x : i64
      return
    }
    """
    assert [value.item() for value in run(text)] == [8]


def test_a_barrier_of_the_compiler_is_nothing() -> None:
    text = """
    func.func @main(%x: tensor<1xf32>, %n: i64) -> (i64, tensor<1xf32>) {
      %a, %b = util.optimization_barrier %n, %x : i64, tensor<1xf32>
      return %a, %b : i64, tensor<1xf32>
    }
    """
    n, x = run(text, torch.tensor([2.0]), 4)
    assert (n.item(), x.item()) == (4, 2)
    assert targets_of(raised(text)) == ["aten.scalar_tensor.default", "aten.clone.default"]
