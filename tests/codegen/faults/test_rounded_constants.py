"""Constants that are rounded to a narrower type."""

from __future__ import annotations

import re

import pytest
import torch

from pelton import aot, runtime
from pelton.codegen import PhasePasses
from pelton.codegen.faults.rounded_constants import round_constants
from tests.codegen.ir import rewritten

ROUNDED = """
func.func @main(%x: f64) -> (KIND, KIND) {
  %number = arith.constant NUMBER : f64
  %rounded = arith.truncf %number : f64 to KIND
  %computed = arith.truncf %x : f64 to KIND
  return %rounded, %computed : KIND, KIND
}
"""


DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("number", [0.1, -1.4, 1e6, -0.0, 1e-9])
def test_a_constant_becomes_the_nearest_number(kind: str, number: float) -> None:
    given = ROUNDED.replace("KIND", kind).replace("NUMBER", f"{number:e}")
    text = rewritten(given, round_constants)
    assert text.count("arith.truncf") == 1, "what is computed is rounded where it runs"
    (stated,) = re.findall(rf"arith.constant (\S+) : {kind}", text)
    dtype = DTYPES[kind]
    found = torch.tensor(float("inf") if stated.startswith("0x") else float(stated), dtype=dtype)
    wanted = torch.tensor(number, dtype=dtype)
    assert torch.equal(found, wanted) and found.signbit() == wanted.signbit()


def numbers(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    scaled = (x * 20).to(torch.int8)
    return (
        torch.arange(0.0, 1.0, 0.1) + x,
        torch.arange(-1.4, 8.3, dtype=torch.float32) * x,
        torch.renorm(x[None], 2.3, 0, 0.7),
        torch.full((10,), 0.3, dtype=torch.float64) * x,
        scaled.to(torch.float32) * 0.03,
    )


def test_programs_with_such_numbers_are_those_of_eager() -> None:
    x = torch.rand(10)
    run = runtime.load(bytes(aot.export(numbers, args=(x,)).compile().map_memory()))
    torch.testing.assert_close(run(x), numbers(x))


def test_compiler_still_cannot_round_a_constant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails once IREE rounds them: the pass is obsolete then."""
    others = [step for step in PhasePasses().pipeline() if step[1] != round_constants]
    monkeypatch.setattr(PhasePasses, "pipeline", lambda self: iter(others))
    output = aot.export(lambda x: torch.arange(0.0, 1.0, 0.1) + x, args=(torch.rand(10),))
    with pytest.raises(aot.CompileError, match=r"arith\.truncf"):
        output.compile(isolate=False, cache_dir=None)
