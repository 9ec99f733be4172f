"""Compiler sessions: passes run between the phases, failures have all diagnostics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from iree.compiler.ir import InsertionPoint, Operation

from pelton.codegen import CompilerFailed, PhasePasses, compile_file
from pelton.codegen.emission import create
from pelton.codegen.linalg import operations_in

SOURCE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
FLAGS = ["--iree-hal-target-backends=vmvx"]


@dataclass(frozen=True)
class Recorded(PhasePasses):
    """Passes that record what they are given: two after one phase, one after a later phase."""

    seen: Any = None

    def pipeline(self) -> Iterator[tuple[str, Any]]:
        for phase in ("input", "input", "flow"):
            yield phase, lambda module_op, phase=phase: self.seen.append((phase, str(module_op)))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "main.mlir"
    path.write_text(SOURCE)
    return path


def test_passes_see_the_module_after_their_phase(source: Path) -> None:
    seen: list[tuple[str, str]] = []
    compile_file(source, source.with_suffix(".vmfb"), FLAGS, Recorded(seen=seen))
    (first, text), (second, same), (third, later) = seen
    assert (first, second, third) == ("input", "input", "flow")
    assert text == same and "arith.addf" in text and "flow.dispatch" not in text
    assert "flow.dispatch" in later
    assert source.with_suffix(".vmfb").stat().st_size > 0


def test_rewrite_of_a_pass_is_compiled(source: Path) -> None:
    seen: list[str] = []

    def multiply(module_op: Operation) -> None:
        for add in operations_in(module_op, "arith.addf"):
            with InsertionPoint(add), add.location:
                product = create("arith.mulf", add.result.type, list(add.operands))
            add.result.replace_all_uses_with(product)
            add.erase()

    class Multiplying(PhasePasses):
        def pipeline(self) -> Iterator[tuple[str, Any]]:
            yield "input", multiply
            yield "executable-sources", lambda module_op: seen.append(str(module_op))

    compile_file(source, source.with_suffix(".vmfb"), FLAGS, Multiplying())
    assert "arith.mulf" in seen[0] and "arith.addf" not in seen[0]


def test_error_of_a_pass_ends_the_compile(source: Path) -> None:
    def refuse(module_op: Operation) -> None:
        raise CompilerFailed("error: no")

    class Refusing(PhasePasses):
        def pipeline(self) -> Iterator[tuple[str, Any]]:
            yield "input", refuse

    with pytest.raises(CompilerFailed) as caught:
        compile_file(source, source.with_suffix(".vmfb"), FLAGS, Refusing())
    assert caught.value.diagnostics == "error: no"
    assert not source.with_suffix(".vmfb").exists()


@pytest.mark.parametrize("passes", [None, PhasePasses()], ids=["plain", "with passes"])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func @main(", "error: "),
        (SOURCE.replace("%x, %x", "%x, %y"), "use of undeclared SSA value name"),
        (SOURCE.replace("arith.addf", "arith.addg"), "arith.addg"),
    ],
    ids=["cut off", "unknown value", "unknown operation"],
)
def test_module_that_does_not_parse(
    source: Path, passes: PhasePasses | None, text: str, message: str
) -> None:
    source.write_text(text)
    with pytest.raises(CompilerFailed) as caught:
        compile_file(source, source.with_suffix(".vmfb"), FLAGS, passes)
    assert message in caught.value.diagnostics


def test_flags_of_a_session_are_those_of_one_compile(source: Path) -> None:
    with pytest.raises(CompilerFailed, match="no-such-flag"):
        compile_file(source, source.with_suffix(".vmfb"), [*FLAGS, "--no-such-flag"])
    compile_file(source, source.with_suffix(".vmfb"), FLAGS)
