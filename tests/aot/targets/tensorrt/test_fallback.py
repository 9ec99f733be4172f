"""Functions that IREE compiles into a package: the module with one entry point."""

from __future__ import annotations

import pytest

pytest.importorskip("onnxscript")

from pelton.aot.raising.fx import open_source
from pelton.aot.targets.tensorrt.fallback import _only
from tests.aot.raising.texts import source_of

MODULE = """
util.global private mutable @__auto.x = 1 : i64
func.func @one(%a: i64) -> i64 { %b = func.call @two(%a) : (i64) -> i64 return %b : i64 }
func.func @two(%a: i64) -> i64 { return %a : i64 }
util.func public @three(%a: i64) -> i64 { util.return %a : i64 }
func.func private @inner(%a: i64) -> i64 { return %a : i64 }
func.func @pelton.state.get.x() -> i64 {
  %x = util.global.load @__auto.x : i64
  return %x : i64
}
func.func @pelton.state.set.x(%a: i64) { util.global.store %a, @__auto.x : i64 return }
"""


@pytest.mark.parametrize("name", ["one", "two", "three"])
def test_one_entry_point_and_the_access_to_state_stay(name: str) -> None:
    source = source_of(MODULE)
    alone = _only(source.module_op, name)
    alone.verify()
    found = open_source(alone)
    assert found.entry_points() == [name]
    assert {"pelton.state.get.x", "pelton.state.set.x"} <= {*found.signatures}
    assert {"one", "two", "three", "inner"} <= {*found.functions}  # they may be called


def test_the_module_itself_is_left_as_it_was() -> None:
    source = source_of(MODULE)
    before = str(source.module_op)
    _only(source.module_op, "two")
    assert str(source.module_op) == before
