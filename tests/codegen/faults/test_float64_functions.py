"""Functions of float64 are exact to a few units of the last place, for numbers of any size."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pytest
import torch

from pelton import aot, runtime
from pelton.codegen import PhasePasses
from pelton.codegen.faults.float64_functions import _parts_of_period, expand_float64_functions
from tests.codegen.ir import reprinted, rewritten

INF, NAN = math.inf, math.nan


def reals(*numbers: float) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


def any_size(least: int = -1021, greatest: int = 1023) -> torch.Tensor:
    draw = random.Random(0)
    exponents = [draw.randint(least, greatest) for _ in range(2000)]
    return reals(*(draw.choice([-1, 1]) * draw.uniform(1, 2) * 2.0**each for each in exponents))


QUARTERS = torch.arange(-400, 400, dtype=torch.float64) * (math.pi / 2)
WORST = reals(6381956970095103 * 2.0**797, -1e22, 1.99 * 2.0**1023)
"""The first is the double that is the nearest to a multiple of pi / 2."""

ENDS = reals(0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 8.0, INF, -INF, NAN)
ANGLES = torch.cat([any_size(), QUARTERS, QUARTERS * 1e5, WORST, ENDS])
SLOPES = torch.cat([any_size(), torch.linspace(-3, 3, 999, dtype=torch.float64), ENDS])
SINES = torch.cat([any_size(-1000, -1), torch.linspace(-1, 1, 999, dtype=torch.float64), ENDS])
POWERS = 2.0 ** torch.arange(-1021, 1024, dtype=torch.float64)
POSITIVE = torch.cat([any_size().abs(), POWERS, SLOPES.abs(), ENDS])
EXPONENTS = torch.cat([SINES, torch.arange(-1021.0, 1030.0, 0.25, dtype=torch.float64)])

FUNCTIONS = {
    "sin": ANGLES, "cos": ANGLES, "tan": ANGLES, "atan": SLOPES, "tanh": SLOPES, "asin": SINES,
    "acos": SINES, "log1p": torch.cat([SINES, POSITIVE]), "expm1": EXPONENTS / 2,
    "log2": POSITIVE, "log10": POSITIVE, "exp2": EXPONENTS,
}  # fmt: skip


def run(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(getattr(x, name)() for name, x in zip(FUNCTIONS, values, strict=True))


@pytest.fixture(scope="module")
def results() -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    values = tuple(FUNCTIONS.values())
    program = runtime.load(bytes(aot.export(run, args=values).compile(None).map_memory()))
    return dict(zip(FUNCTIONS, zip(program(*values), run(*values), strict=True), strict=True))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_exact_to_a_few_units(
    name: str, results: dict[str, tuple[torch.Tensor, torch.Tensor]]
) -> None:
    got, eager = results[name]
    assert torch.equal(got.isnan(), eager.isnan())
    endless = eager.isinf()
    assert torch.equal(got[endless], eager[endless])
    regular = eager.isfinite() & ((eager.abs() > 2.0**-1021) | (eager == 0))
    got, eager = got[regular], eager[regular]
    assert torch.equal(got.signbit(), eager.signbit())
    unit = eager.abs() * torch.finfo(torch.float64).eps
    assert ((got - eager).abs() <= 4 * unit).all()


def test_whole_powers_are_exact(results: dict[str, tuple[torch.Tensor, torch.Tensor]]) -> None:
    for name in ("log2", "exp2"):
        got, eager = results[name]
        whole = FUNCTIONS[name] == FUNCTIONS[name].round()
        exact = whole if name == "exp2" else torch.isin(FUNCTIONS[name], POWERS)
        exact &= eager.abs() > 2.0**-1021
        assert exact.sum() > 1000 and torch.equal(got[exact], eager[exact])


def test_parts_are_those_of_a_period() -> None:
    parts = _parts_of_period()
    assert sum(part * 2.0 ** (-26 * place) for place, part in enumerate(parts[:3])) == (
        pytest.approx(1 / (2 * math.pi), rel=1e-16)
    )
    assert parts[-1] * 2**26 % 1 == 0 and len(parts) == 46


BODY = """
func.func @main(%x: tensor<4xKIND>) -> tensor<4xKIND> {
  %0 = linalg.generic {
    indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]
  } ins(%x : tensor<4xKIND>) outs(%x : tensor<4xKIND>) {
  ^bb0(%in: KIND, %out: KIND):
    %1 = math.NAME %in : KIND
    linalg.yield %1 : KIND
  } -> tensor<4xKIND>
  return %0 : tensor<4xKIND>
}
"""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_other_types_are_left_alone(name: str) -> None:
    text = BODY.replace("NAME", name)
    assert f"math.{name} " not in rewritten(text.replace("KIND", "f64"), expand_float64_functions)
    single = text.replace("KIND", "f32")
    assert rewritten(single, expand_float64_functions) == reprinted(single)


def test_only_powers_of_two_are_replaced() -> None:
    text = BODY.replace("KIND", "f64").replace("math.NAME %in", "math.powf %base, %in")
    for base, kept in (("2.0", 0), ("3.0", 1)):
        constant = f"%base = arith.constant {base} : f64"
        given = text.replace("  %0 =", f"  {constant}\n  %0 =")
        assert rewritten(given, expand_float64_functions).count("math.powf") == kept


def test_numbers_of_the_host_are_left_alone() -> None:
    text = "func.func @main(%x: f64) -> f64 { %y = math.sin %x : f64 return %y : f64 }"
    assert rewritten(text, expand_float64_functions) == reprinted(text)


class Rotary(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        frequencies = 1.0 / 10000 ** (torch.arange(0, 8, 2, dtype=torch.float64) / 8)
        angles = torch.outer(torch.arange(6.0, dtype=torch.float64), frequencies)
        return x * angles.cos().float() + x.flip(-1) * angles.sin().float()


def test_tables_are_evaluated_for_gpus(tmp_path: Path) -> None:
    aot.export(Rotary(), args=(torch.randn(6, 4),)).compile(tmp_path / "a.vmfb", target="cuda")


def test_the_compiler_alone_calls_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails once IREE has such functions: the pass is obsolete then."""
    others = [each for each in PhasePasses().pipeline() if each[1] != expand_float64_functions]
    monkeypatch.setattr(PhasePasses, "pipeline", lambda self: iter(others))
    x = reals(0.1, 1e-12, 100.0)
    for name in ("cos", "atan", "log2"):
        output = aot.export(lambda x, name=name: getattr(x, name)(), args=(x,))
        with pytest.raises(aot.CompileError, match="failed to link"):
            output.compile(isolate=False, cache_dir=None)
    output = aot.export(lambda x: (x.log1p(), x.expm1(), x.exp2()), args=(x,))
    program = runtime.load(bytes(output.compile(isolate=False, cache_dir=None).map_memory()))
    for got, eager in zip(program(x), (x.log1p(), x.expm1(), x.exp2()), strict=True):
        assert not torch.allclose(got, eager, rtol=1e-15, atol=0)
