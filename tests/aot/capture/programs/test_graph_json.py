"""Graphs as JSON: every kind of size, number and control flow comes back as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pelton import aot, runtime
from tests.programs import assert_same, through_files

X = torch.zeros(1, 1, 8)  # sizes of 1, of which torch would make constants
ROWS = aot.NamedDimension("rows", 1, 2, 6)
HALF = torch.export.Dim("half", min=1, max=5)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.norm = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, count, _ = x.shape
        query, key, value = self.qkv(x).view(rows, count, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.norm(self.out(mixed.transpose(1, 2).reshape(rows, count, 8)) + x)


def attend(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return model(x)


def strided(model: nn.Module, x: torch.Tensor) -> tuple[torch.Tensor, int]:
    return model(x)[:, ::2].mean(1), x.shape[1] // 2


def halves(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    first, second = x.unflatten(1, (2, -1)).unbind(1)
    return first - second


def repeat(model: nn.Module, x: torch.Tensor, times: int) -> tuple[torch.Tensor, int]:
    return x.repeat(times, 1, 1), times + 1


def choose(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.cond(x.sum() > 0, lambda v: v * 2, lambda v: v - 1, (x,))


def loop(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    def more(count: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return count < 3

    def step(count: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return count + 1, value * 2

    return torch.while_loop(more, step, (torch.zeros((), dtype=torch.int64), x))[1]


both = {"x": {0: ROWS, 1: "count"}}
CASES: dict[str, tuple[Callable[..., Any], list[Any], Any, list[tuple[Any, ...]]]] = {
    "two sizes and views": (
        attend, [X], both, [(torch.randn(1, 1, 8),), (torch.randn(3, 5, 8),)],
    ),
    "computed sizes": (strided, [X], both, [(torch.randn(2, 3, 8),), (torch.randn(1, 6, 8),)]),
    "derived sizes": (
        halves, [torch.zeros(2, 6, 8)], {"x": {1: 2 * HALF}},
        [(torch.randn(2, 2, 8),), (torch.randn(2, 10, 8),)],
    ),
    "integers": (
        repeat, [X, aot.DimensionInputInfo((0, 2, 4))], {"x": {0: "rows"}},
        [(torch.randn(2, 1, 8), 3), (torch.randn(1, 1, 8), 1)],
    ),
    "a branch": (choose, [X], both, [(torch.ones(2, 2, 8),), (-torch.ones(1, 3, 8),)]),
    "a loop": (loop, [X], {"x": {0: "rows"}}, [(torch.ones(2, 1, 8),)]),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_loaded_graph_is_the_saved_one(case: str, tmp_path: Path) -> None:
    function, args, shapes, calls = CASES[case]
    builder = aot.FxProgramsBuilder(Attention().eval())
    builder.export_program(function, args=args, dynamic_shapes=shapes, name="main", strict=False)
    builder.save(tmp_path / "p.json")
    if case == "a branch":  # which the importer does not know; in the files it is all the same
        loaded = aot.FxPrograms.load(tmp_path / "p.json").programs["main"].target.module()
    else:
        out = aot.export(aot.FxPrograms.load(tmp_path / "p.json"))
        expected = aot.export(builder).signatures["main"]
        assert out.signatures["main"] == expected
        loaded = through_files(out, tmp_path)
    for given in calls:
        with torch.no_grad():
            assert_same(loaded(*given), function(builder.root_module, *given))


def test_ranges_of_derived_sizes_are_checked_after_loading(tmp_path: Path) -> None:
    builder = aot.FxProgramsBuilder(nn.Identity())
    function, args, shapes, _ = CASES["derived sizes"]
    builder.export_program(function, args=args, dynamic_shapes=shapes, strict=False)
    builder.save(tmp_path / "p.json")
    executable = through_files(aot.export(aot.FxPrograms.load(tmp_path / "p.json")), tmp_path)
    for columns, message in ((3, r"half"), (12, r"half.*outside its range 1\.\.5")):
        with pytest.raises(runtime.SignatureError, match=message):
            executable(torch.zeros(2, columns, 8))


def test_nothing_but_the_users_lines_is_kept_of_each_operator(tmp_path: Path) -> None:
    builder = aot.FxProgramsBuilder(Attention().eval())
    builder.export_program(attend, args=[X], dynamic_shapes=both, strict=False)
    builder.save(tmp_path / "p.json")
    graph = json.loads((tmp_path / "p.json").read_text())["body"]["programs"][0]["graph"]
    nodes = graph["graph_module"]["graph"]["nodes"]
    assert {key for node in nodes for key in node["metadata"]} == {"stack_trace", "nn_module_stack"}
    assert (graph["guards_code"], graph["graph_module"]["module_call_graph"]) == ([], [])
    loaded = aot.FxPrograms.load(tmp_path / "p.json")
    assert f"{Path(__file__).name}" in aot.export(loaded).mlir_module.get_asm(
        enable_debug_info=True
    )
