from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.verify.bisect import first_differing

ROWS = aot.InputInfo((aot.NamedDimension("rows", 1, 2, 4), 8), torch.float32)


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
        self.register_buffer("seen", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.linear(x))
        hidden = torch.sinh(hidden * 0.5)
        self.seen.add_(hidden.sum(0))
        return (hidden * 2 + self.seen).softmax(-1)


LINE_OF_SINH = Net.forward.__code__.co_firstlineno + 2


def wrong_sinh(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x)


def with_a_wrong_decomposition(module: Any) -> aot.ExportOutput:
    table = {**aot.current_aot_decompositions(), torch.ops.aten.sinh.default: wrong_sinh}
    return aot.export(module, args=[ROWS], decompositions=table)


@pytest.mark.parametrize("at_once", [1, 3, 24])
@pytest.mark.parametrize("count", [1, 2, 25, 1000])
def test_the_first_differing_position_is_found(count: int, at_once: int) -> None:
    for wanted in {0, count // 3, count - 1}:
        looked_at: list[int] = []

        def probe(positions: Any, first: int = wanted, seen: list[int] = looked_at) -> list[bool]:
            assert len(positions) <= at_once + 1
            seen.extend(positions)
            return [position >= first for position in positions]

        assert first_differing(count, probe, at_once) == wanted
    assert first_differing(count, lambda positions: [False] * len(positions), at_once) is None


def test_a_wrong_operator_is_found_with_its_line_and_a_reproducer(tmp_path: Path) -> None:
    module = Net()
    out = with_a_wrong_decomposition(module)
    with pytest.raises(aot.NumericsError) as caught:
        out.verify(numerics=aot.Numerics(seeds=[0], bisect=tmp_path / "found"))
    first_difference = caught.value.report.first_difference
    assert first_difference is not None
    assert first_difference.operator == "aten.sinh.default"
    assert (first_difference.location.file, first_difference.location.line) == (
        __file__,
        LINE_OF_SINH,
    )
    assert first_difference.stage == "export"
    assert first_difference.reproducer == tmp_path / "found" / "reproduce.py"
    assert f"aten.sinh.default (at {__file__}:{LINE_OF_SINH})" in str(caught.value)
    script = [sys.executable, str(first_difference.reproducer)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr
    assert "wanted: tensor(" in done.stdout


def test_the_users_module_is_left_as_it_was(tmp_path: Path) -> None:
    module = Net()
    module.seen += 1
    with pytest.raises(aot.NumericsError):
        with_a_wrong_decomposition(module).verify(
            numerics=aot.Numerics(seeds=[0], special_values=False, bisect=tmp_path)
        )
    assert torch.equal(module.seen, torch.ones(8))


def test_an_artifact_of_another_module_has_no_operator_to_blame(tmp_path: Path) -> None:
    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    def triple(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    aot.export(double, args=[ROWS]).compile(tmp_path / "double.vmfb")
    out = aot.export(triple, args=[ROWS])
    with pytest.raises(aot.NumericsError) as caught:
        out.verify(numerics=aot.Numerics(bisect=True), artifact=tmp_path / "double.vmfb")
    assert "the artifact is of another module" in str(caught.value.report)
