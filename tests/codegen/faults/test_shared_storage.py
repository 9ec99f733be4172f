"""Copies of storage that is written in place: which operands need one, and which do not."""

from __future__ import annotations

import pytest

from pelton.codegen.faults.shared_storage import copy_shared_storage
from tests.codegen.ir import rewritten
from tests.programs import check_text

RESOURCE = "!stream.resource<*>"

TIED = """stream.tensor.update %part, {target}[%c0] : tensor<1xf32> in !stream.resource<*>{{%c4}}
    -> tensor<3xf32> in {target} as !stream.resource<*>{{%c12}}"""
READ = """stream.tensor.dispatch @ex::@read({source})
    : (tensor<3xf32> in !stream.resource<*>{{%c12}})
    -> tensor<3xf32> in !stream.resource<*>{{%c12}}"""


def _function(body: str, results: int = 1) -> str:
    """Return a module with a function of a fresh value %s, an argument %x and a part to write."""
    kinds = ", ".join([RESOURCE] * results)
    made = READ.format(source="%x")
    return f"""
    util.global private mutable @state : !stream.resource<variable>
    util.global private mutable @other : !stream.resource<variable>
    util.global private @weight : !stream.resource<constant>
    util.func public @main(%x: {RESOURCE}, %part: {RESOURCE}) -> ({kinds}) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c12 = arith.constant 12 : index
      %zero = arith.constant 0.0 : f32
      %s = {made}
      {body}
    }}
    """


def _splat(name: str) -> str:
    return f"""%{name} = stream.tensor.splat %zero : f32
        -> tensor<3xf32> in !stream.resource<*>{{%c12}}"""


def _copies(body: str, results: int = 1) -> int:
    return rewritten(_function(body, results), copy_shared_storage).count("stream.async.copy")


def test_the_copy_is_made_before_the_write_in_storage_of_its_own() -> None:
    write, read = TIED.format(target="%s"), READ.format(source="%s")
    body = f"%r = {read}\n%w = {write}\nutil.return %r, %w : {RESOURCE}, {RESOURCE}"
    check_text(
        rewritten(_function(body, 2), copy_shared_storage),
        """
        CHECK: %[[HIDDEN:.+]] = util.optimization_barrier %{{.+}} : index
        CHECK: %[[S:.+]] = stream.tensor.dispatch @ex::@read(%arg0)
        CHECK: stream.tensor.dispatch @ex::@read(%[[S]])
        CHECK: %[[LENGTH:.+]] = arith.addi %{{.+}}, %[[HIDDEN]] : index
        CHECK: %[[NEW:.+]] = stream.async.alloca
        CHECK: %[[COPY:.+]] = stream.async.copy %[[S]][%{{.+}} to %[[LENGTH]]], %[[NEW]]
        CHECK: stream.tensor.update %{{.+}}, %[[COPY]]
        """,
    )


WRITES = {
    "fresh": (TIED.format(target="%s"), 0),
    "an argument": (TIED.format(target="%x"), 1),
    "through a change of type": (
        f"stream.async.cast %s : {RESOURCE}{{%c12}} -> {RESOURCE}{{%c12}}\n"
        f"%w2 = {TIED.format(target='%w')}", 0
    ),
    "a constant": (
        f"""stream.tensor.constant : tensor<3xf32> in {RESOURCE} = dense<1.0> : tensor<3xf32>
        %w2 = {TIED.format(target='%w')}""", 1
    ),
    "a weight": (
        f"""util.global.load @weight : !stream.resource<constant>
        %k = stream.async.clone %w : !stream.resource<constant>{{%c12}} -> {RESOURCE}{{%c12}}
        %w2 = {TIED.format(target='%k')}""", 1
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_has_no_other_use(name: str) -> None:
    body, copies = WRITES[name]
    last = "%w2" if "%w2" in body else "%w"
    assert _copies(f"%w = {body}\nutil.return {last} : {RESOURCE}") == copies


def test_each_of_two_writers_of_a_value_gets_a_copy() -> None:
    write = TIED.format(target="%s")
    assert (
        _copies(f"%a = {write}\n%b = {write}\nutil.return %a, %b : {RESOURCE}, {RESOURCE}", 2) == 2
    )


def test_equal_constants_that_are_written_stay_two() -> None:
    body = f"""{_splat("p")}
      {_splat("q")}
      %a = {TIED.format(target="%p")}
      %b = {TIED.format(target="%q")}
      util.return %a, %b : {RESOURCE}, {RESOURCE}"""
    text = rewritten(_function(body, 2), copy_shared_storage)
    assert text.count("util.optimization_barrier") == 2
    assert "stream.async.copy" not in text


def _state(between: str = "", stored: str = "%w") -> str:
    return f"""
      %old = util.global.load @state : !stream.resource<variable>
      %t = stream.async.clone %old : !stream.resource<variable>{{%c12}} -> {RESOURCE}{{%c12}}
      {between}
      %w = {TIED.format(target="%t")}
      %new = stream.async.clone {stored} : {RESOURCE}{{%c12}} -> !stream.resource<variable>{{%c12}}
      util.global.store %new, @state : !stream.resource<variable>
    """


STATES = {
    "updated": (_state(), 0),
    "updated and read afterwards": (_state() + "%r = " + READ.format(source="%w"), 0),
    "read before": (_state("%r = " + READ.format(source="%t")), 1),
    "loaded twice": (_state("%l = util.global.load @state : !stream.resource<variable>"), 1),
    "not stored back": (_state(stored="%s"), 1),
    "stored in two": (
        _state() + "util.global.store %new, @other : !stream.resource<variable>", 1
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STATES)
def test_a_global_is_updated_in_place_if_nothing_else_has_its_value(name: str) -> None:
    body, copies = STATES[name]
    assert _copies(f"{body}\nutil.return %x : {RESOURCE}") == copies


def test_a_loop_owns_what_it_carries() -> None:
    body = f"""
      %n = scf.for %i = %c0 to %c4 step %c1 iter_args(%a = START) -> ({RESOURCE}) {{
        %w = {TIED.format(target="%a")}
        scf.yield %w : {RESOURCE}
      }}
      util.return %n, %s : {RESOURCE}, {RESOURCE}"""
    shared = rewritten(_function(body.replace("START", "%s"), 2), copy_shared_storage)
    assert shared.count("stream.async.copy") == 1
    assert shared.index("stream.async.copy") < shared.index("scf.for"), "copied in each step"
    fresh = f"%f = {READ.format(source='%x')}" + body.replace("START", "%f")
    assert _copies(fresh, 2) == 0


def test_barriers_of_tensors_are_removed() -> None:
    body = f"%b = util.optimization_barrier %s : {RESOURCE}\nutil.return %b : {RESOURCE}"
    assert "optimization_barrier" not in rewritten(_function(body), copy_shared_storage)
