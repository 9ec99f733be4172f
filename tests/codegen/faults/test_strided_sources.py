"""Gathers from slices of a step compile, and give what eager gives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pelton import aot, runtime
from pelton.codegen import PhasePasses
from pelton.codegen.faults.strided_sources import materialize_strided_sources
from tests.codegen.ir import rewritten
from tests.programs import check_text

GATHER = """
func.func @main(%x: tensor<?x4xf32>, %n: index, %i: index) -> f32 {
  %part = tensor.extract_slice %x[0, 0] [%n, 2] [STRIDES] : tensor<?x4xf32> to tensor<?x2xf32>
  %flat = tensor.collapse_shape %part [[0, 1]] : tensor<?x2xf32> into tensor<?xf32>
  %element = tensor.extract %flat[%i] : tensor<?xf32>
  return %element : f32
}
"""


def test_a_slice_of_every_second_column_is_read_from_behind_a_barrier() -> None:
    check_text(
        rewritten(GATHER.replace("STRIDES", "1, 2"), materialize_strided_sources),
        """
        CHECK: %[[FLAT:.+]] = tensor.collapse_shape
        CHECK: %[[SIZE:.+]] = tensor.dim %[[FLAT]]
        CHECK: %[[HIDDEN:.+]] = util.optimization_barrier %[[FLAT]]
        CHECK: %[[SOURCE:.+]] = flow.tensor.tie_shape %[[HIDDEN]] : tensor<?xf32>{%[[SIZE]]}
        CHECK: tensor.extract %[[SOURCE]]
        """,
    )


def test_a_slice_without_a_step_is_left() -> None:
    text = rewritten(GATHER.replace("STRIDES", "1, 1"), materialize_strided_sources)
    assert "optimization_barrier" not in text


def gathers(x: Tensor, i: Tensor) -> dict[str, Tensor]:
    columns = x[:, ::2]
    written = x * 2
    written[:, ::2] = written[:, ::2].flip(0)
    return {
        "rows reversed": columns.flip(0),
        "columns reversed": columns.flip(1),
        "rows": columns[i],
        "columns": columns[:, i],
        "gathered": columns.gather(1, i.expand(x.shape[0], 2)),
        "diagonal": columns.diagonal(),
        "of three dimensions": x.reshape(-1, 2, 2)[:, :, ::2].flip(0),
        "one column": x[::2, 1].flip(0),
        "from the second": x[1:, 1::2][i],
        "written": written,
    }


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
def test_gathers_from_slices_of_a_step_are_those_of_eager(dynamic: bool) -> None:
    rows = aot.NamedDimension("rows", 3, 50, 64)
    i = torch.tensor([1, 0])
    given = aot.InputInfo((rows if dynamic else 50, 4), torch.float32)
    run = runtime.load(bytes(aot.export(gathers, args=(given, i)).compile().map_memory()))
    for size in (50, 3, 64) if dynamic else (50,):
        x = torch.randn(size, 4)
        torch.testing.assert_close(run(x, i), gathers(x, i), rtol=0, atol=0)


def test_compiler_still_refuses_a_gather_from_a_slice_of_a_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fails once IREE compiles them: the pass is obsolete then."""
    others = [step for step in PhasePasses().pipeline() if step[1] != materialize_strided_sources]
    monkeypatch.setattr(PhasePasses, "pipeline", lambda self: iter(others))
    output = aot.export(lambda x: x[:, ::2].flip(0), args=(torch.ones(50, 4),))
    with pytest.raises(aot.CompileError, match="unrealized_conversion_cast"):
        output.compile(isolate=False, cache_dir=None)
