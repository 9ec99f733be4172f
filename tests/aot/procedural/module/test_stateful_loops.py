"""Control flow over mutable globals: which functions are lowered to blocks, and which are left."""

from __future__ import annotations

import pytest
from iree.compiler.ir import Module, StringAttr

from pelton.aot.ir.builder import ModuleBuilder
from pelton.aot.procedural.module.stateful_loops import lower_stateful_control_flow
from tests.aot.procedural.traces import new_builder

GLOBALS = """
util.global private mutable @state = 0 : i64
util.global private @fixed = 0 : i64
"""

LOAD = "%x = util.global.load @state : i64"
STORE = "%c = arith.constant 1 : i64\n util.global.store %c, @state : i64"
LOAD_FIXED = "%x = util.global.load @fixed : i64"


def branch(body: str, before: str = "") -> str:
    return f"{before}\n scf.if %cond {{ {body} }}\n return"


def loop(body: str) -> str:
    return f"""
    %lo = arith.constant 0 : index
    %step = arith.constant 1 : index
    scf.for %i = %lo to %step step %step {{ {body} }}
    return
    """


def lowered(**functions: str) -> set[str]:
    """Return the names of the functions that have no `scf` operation any more."""
    text = GLOBALS + "\n".join(
        f"func.func @{name}(%cond: i1) {{ {body} }}" for name, body in functions.items()
    )
    module = Module.parse(text, new_builder().context)
    lower_stateful_control_flow(ModuleBuilder(module.operation))
    assert module.operation.verify()
    return {
        StringAttr(op.attributes["sym_name"]).value
        for op in module.body.operations
        if op.operation.name == "func.func" and "scf." not in str(op)
    }


@pytest.mark.parametrize("body", [LOAD, STORE], ids=["load", "store"])
def test_a_branch_or_loop_that_accesses_state_is_lowered(body: str) -> None:
    assert lowered(a=branch(body), b=loop(body), c=loop("scf.if %cond { " + body + " }")) == {
        "a",
        "b",
        "c",
    }


def test_control_flow_that_accesses_no_state_is_left() -> None:
    bodies = {"a": branch(""), "b": loop(LOAD_FIXED), "c": branch("", before=STORE)}
    assert lowered(**bodies) == set()


def test_a_function_without_control_flow_is_left_as_it_is() -> None:
    assert lowered(a=f"{STORE}\n return", b=branch("")) == {"a"}


def test_state_that_callees_access_counts_through_any_number_of_calls() -> None:
    functions = {
        "a": branch("func.call @b(%cond) : (i1) -> ()"),
        "b": "func.call @c(%cond) : (i1) -> ()\n return",
        "c": "func.call @d(%cond) : (i1) -> ()\n return",
        "d": f"{LOAD}\n return",
        "e": branch("func.call @f(%cond) : (i1) -> ()"),
        "f": f"{LOAD_FIXED}\n return",
    }
    assert lowered(**functions) == {"a", "b", "c", "d", "f"}


def test_functions_that_call_each_other_end_the_search() -> None:
    functions = {
        "a": branch("func.call @b(%cond) : (i1) -> ()"),
        "b": branch("func.call @a(%cond) : (i1) -> ()"),
    }
    assert lowered(**functions) == set()
    assert lowered(**functions | {"b": branch("func.call @a(%cond) : (i1) -> ()", STORE)}) == {
        "a",
        "b",
    }


def test_an_empty_module_is_left() -> None:
    assert lowered() == set()
