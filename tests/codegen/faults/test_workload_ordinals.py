"""Workload ordinals: corrected ones, and results equal to those of eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from iree.compiler.ir import IntegerAttr, Operation

from pelton import aot, runtime
from pelton.aot.targets.iree import target as iree_target
from pelton.codegen import CompilerFailed, PhasePasses, compile_file
from pelton.codegen.faults.workload_ordinals import fix_workload_ordinals
from pelton.codegen.linalg import operations_in
from tests.codegen.ir import parsed, reprinted, rewritten

ORDINAL = "iree_tensor_ext.dispatch.workload.ordinal"
FLAGS = ("--iree-hal-target-backends=llvm-cpu", "--iree-input-type=auto", "--iree-opt-level=O1")
ROWS, COLUMNS = aot.NamedDimension("rows", 2, 3, 9), aot.NamedDimension("columns", 2, 5, 70)


@dataclass(frozen=True)
class Recorded(PhasePasses):
    """Records the module after a phase, as the compiler left it."""

    texts: list[str] | None = None

    def pipeline(self) -> Iterator[tuple[str, Callable[[Any], None]]]:
        assert self.texts is not None
        yield "executable-sources", lambda module_op: self.texts.append(str(module_op))


def sources(folder: Path, function: Any, *shapes: Sequence[Any]) -> str:
    """Return a module at the end of the phase `executable-sources`, with IREE's faults."""
    args = [aot.InputInfo(shape, torch.float32) for shape in shapes]
    aot.export(function, args=args).save_mlir(folder / "m.mlirbc")
    texts: list[str] = []
    flags = [*FLAGS, "--iree-opt-data-tiling"]
    compile_file(folder / "m.mlirbc", folder / "m.vmfb", flags, Recorded(texts=texts))
    return texts[0]


def ordinals(module_op: Operation) -> list[int]:
    found = operations_in(module_op, ORDINAL)
    return [IntegerAttr(op.attributes["ordinal"]).value for op in found]


def scores(q: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ q.transpose(1, 2), -1) @ q


def test_ordinals_that_the_compiler_gets_wrong_are_corrected(tmp_path: Path) -> None:
    """Fails once IREE numbers ordinals correctly: the pass is obsolete then."""
    with parsed(sources(tmp_path, scores, (ROWS, COLUMNS, 8))) as module_op:
        before = ordinals(module_op)
        fix_workload_ordinals(module_op)
        after = ordinals(module_op)
        fix_workload_ordinals(module_op)
        assert ordinals(module_op) == after
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed
    assert all(old == 0 and new > 0 for old, new in changed)


def test_any_wrong_ordinal_of_a_program_is_corrected(tmp_path: Path) -> None:
    text = sources(tmp_path, lambda x, y: x * 2 + y.T, (ROWS, COLUMNS), (COLUMNS, ROWS))
    with parsed(text) as module_op:
        right = ordinals(module_op)
        assert set(right) == {0, 1}
        for op in operations_in(module_op, ORDINAL):
            op.attributes["ordinal"] = IntegerAttr.get(op.attributes["ordinal"].type, 0)
        assert ordinals(module_op) != right
        fix_workload_ordinals(module_op)
        assert ordinals(module_op) == right


# By hand: a dispatch of two sizes, the second in two halves of 32 bits.

LAYOUT = "#hal.pipeline.layout<constants = 3, bindings = [#hal.pipeline.binding<storage_buffer>]>"
TARGET = '#hal.executable.target<"llvm-cpu", "embedded-elf-x86_64">'
MODULE = """
module {{
  hal.executable private @exe {{
    hal.executable.variant public @variant target({target}) {{
      hal.executable.export public @run ordinal(0) layout({layout}) count(
          %device: !hal.device, %m: index, %n: index) -> (index, index, index) {{
        hal.return %m, %n, %n : index, index, index
      }}
      builtin.module {{
        func.func @run() {{
          %c32 = arith.constant 32 : i64
          %c8 = arith.constant 8 : index
          %0 = hal.interface.constant.load layout({layout}) ordinal(0) : i32
          %1 = hal.interface.constant.load layout({layout}) ordinal(1) : i32
          %2 = hal.interface.constant.load layout({layout}) ordinal(2) : i32
          %rows = arith.index_castui %0 : i32 to index
          %3 = arith.extui %1 : i32 to i64
          %4 = arith.extui %2 : i32 to i64
          %5 = arith.shli %4, %c32 : i64
          %6 = arith.ori %3, %5 : i64
          %7 = arith.index_castui %6 : i64 to index
          %columns = util.assume.int %7<umin = 0, umax = 9007199254740991> : index
          %first = iree_tensor_ext.dispatch.workload.ordinal {first} : index
          %second = iree_tensor_ext.dispatch.workload.ordinal {second} : index
          return
        }}
      }}
    }}
  }}
  util.func public @main(%m: index, %n: index, %resource: !stream.resource<external>, %k: index) {{
    %c0 = arith.constant 0 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : i64
    %0 = arith.index_castui %m : index to i32
    %1 = arith.index_castui %n : index to i64
    %2 = arith.trunci %1 : i64 to i32
    %3 = arith.shrui %1, %c32 : i64
    %4 = arith.trunci %3 : i64 to i32
    %5 = stream.cmd.execute with(%resource as %given: !stream.resource<external>{{%k}}) {{
      {dispatches}
    }} => !stream.timepoint
    util.return
  }}
}}
"""


def dispatch(workload: str, constants: str = "%0, %2, %4") -> str:
    return f"""stream.cmd.dispatch @exe::@variant::@run[{workload}]({constants} : i32, i32, i32) {{
        rw %given[%c0 for %k] : !stream.resource<external>{{%k}}
      }}"""


def module(first: str, second: str, *dispatches: str) -> str:
    return MODULE.format(
        target=TARGET,
        layout=LAYOUT,
        first=first,
        second=second,
        dispatches="\n".join(dispatches or [dispatch("%m, %n")]),
    )


def fixed_ordinals(text: str) -> list[int]:
    with parsed(rewritten(text, fix_workload_ordinals)) as module_op:
        return ordinals(module_op)


@pytest.mark.parametrize("wrong", [0, 1, 7])
def test_ordinal_follows_from_the_constants_of_the_dispatch(wrong: int) -> None:
    assert fixed_ordinals(module(f"%rows, {wrong}", f"%columns, {wrong}")) == [0, 1]


def test_right_ordinals_stay() -> None:
    text = module("%rows, 0", "%columns, 1")
    assert rewritten(text, fix_workload_ordinals) == reprinted(text)


def test_either_of_two_equal_sizes_is_right() -> None:
    twice = dispatch("%n, %m, %n")
    assert fixed_ordinals(module("%rows, 1", "%columns, 2", twice)) == [1, 2]
    assert fixed_ordinals(module("%rows, 0", "%columns, 1", twice)) == [1, 0]


def test_ordinal_is_right_for_all_dispatches() -> None:
    both = (dispatch("%m, %n, %m"), dispatch("%n, %m, %m", "%0, %2, %4"))
    assert fixed_ordinals(module("%rows, 0", "%rows, 1", *both)) == [2, 2]


def test_sizes_that_are_literals() -> None:
    assert fixed_ordinals(module("%c8, 0", "%columns, 0", dispatch("%n, %c8"))) == [1, 0]


def test_function_without_dispatches_stays() -> None:
    text = module("%rows, 1", "%columns, 0", "")
    assert rewritten(text, fix_workload_ordinals) == reprinted(text)


def test_size_that_no_dispatch_passes_is_refused() -> None:
    with parsed(module("%c8, 0", "%columns, 1")) as module_op:
        with pytest.raises(CompilerFailed, match="workload ordinals of exe::variant::run wrongly"):
            fix_workload_ordinals(module_op)


def test_size_that_no_dispatch_passes_is_left_where_its_ordinal_is_not_of_the_fault() -> None:
    assert fixed_ordinals(module("%c8, 1", "%columns, 0")) == [1, 1]


class Decoder(torch.nn.Module):
    """A small language model of `transformers`; takes vectors."""

    def __init__(self) -> None:
        transformers = pytest.importorskip("transformers")
        super().__init__()
        config = transformers.Qwen3Config(
            vocab_size=16, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
            num_attention_heads=4, num_key_value_heads=4, head_dim=8, max_position_embeddings=64,
        )  # fmt: skip
        self.model = transformers.Qwen3Model(config).eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.model(inputs_embeds=x, use_cache=False)[0]
        return result


@pytest.mark.parametrize("fixed", [True, False])
def test_results_are_right_with_the_pass_only(
    fixed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rotary embedding was zero past the eighth position."""
    if not fixed:
        monkeypatch.setattr(PhasePasses, "pipeline", lambda self: iter(()))
        monkeypatch.setattr(iree_target, "compile_file_isolated", compile_file)
    torch.manual_seed(0)
    model = Decoder()
    shape = (aot.NamedDimension("batch", 1, 2, 4), aot.NamedDimension("length", 4, 12, 40), 32)
    out = aot.export(model, args=[aot.InputInfo(shape, torch.float32)])
    settings: dict[str, Any] = {"optimization_level": 1, "flags": ["--iree-opt-data-tiling"]}
    out.compile(tmp_path / "m.vmfb", cache_dir=None, **settings)
    exe = runtime.load(tmp_path / "m.vmfb")
    differences = []
    for batch, length in ((1, 4), (2, 8), (2, 9), (3, 40)):
        x = torch.randn(batch, length, 32)
        differences.append((exe(x) - model(x).detach()).abs().max().item())
    assert (max(differences) < 1e-4) is fixed
