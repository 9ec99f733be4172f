"""Sizes that IREE numbers wrongly are put right, and results are those of eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from iree.compiler.ir import Context, InsertionPoint, IntegerAttr, Module, Operation, WalkResult

from pelton import aot, runtime
from pelton.aot.targets.iree import target as iree_target
from pelton.codegen import Changes, CompilerFailed, compile_file
from pelton.codegen.faults.workload_ordinals import mend_workloads

ORDINAL = "iree_tensor_ext.dispatch.workload.ordinal"
FLAGS = ("--iree-hal-target-backends=llvm-cpu", "--iree-input-type=auto", "--iree-opt-level=O1")
ROWS, COLUMNS = aot.NamedDimension("rows", 2, 3, 9), aot.NamedDimension("columns", 2, 5, 70)


@dataclass(frozen=True)
class Seen(Changes):
    """Remembers the module after a phase, as the compiler left it."""

    texts: list[str] | None = None

    def by_phase(self) -> Iterator[tuple[str, Callable[[Any], None]]]:
        assert self.texts is not None
        yield "executable-sources", lambda module_op: self.texts.append(str(module_op))


def sources(folder: Path, function: Any, *shapes: Sequence[Any]) -> str:
    """Return a module at the end of the phase `executable-sources`, with IREE's faults."""
    args = [aot.InputInfo(shape, torch.float32) for shape in shapes]
    aot.export(function, args=args).save_mlir(folder / "m.mlirbc")
    texts: list[str] = []
    flags = [*FLAGS, "--iree-opt-data-tiling"]
    compile_file(folder / "m.mlirbc", folder / "m.vmfb", flags, Seen(texts=texts))
    return texts[0]


def numbers(module_op: Operation) -> list[int]:
    found: list[int] = []

    def visit(op: Operation) -> WalkResult:
        if op.name == ORDINAL:
            found.append(IntegerAttr(op.attributes["ordinal"]).value)
        return WalkResult.ADVANCE

    module_op.walk(visit)
    return found


def scores(q: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ q.transpose(1, 2), -1) @ q


def test_numbers_that_the_compiler_gets_wrong_are_put_right(tmp_path: Path) -> None:
    """Fails once IREE numbers sizes rightly: the change is not needed any more then."""
    with Context():
        module_op = Module.parse(sources(tmp_path, scores, (ROWS, COLUMNS, 8))).operation
        before = numbers(module_op)
        mend_workloads(module_op)
        after = numbers(module_op)
        mend_workloads(module_op)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert changed
    assert all(old == 0 and new > 0 for old, new in changed)
    assert numbers(module_op) == after


def test_any_wrong_number_is_put_right(tmp_path: Path) -> None:
    with Context() as context:
        text = sources(tmp_path, lambda x, y: x * 2 + y.T, (ROWS, COLUMNS), (COLUMNS, ROWS))
        module_op = Module.parse(text).operation
        right = numbers(module_op)
        assert set(right) == {0, 1}

        def spoil(op: Operation) -> WalkResult:
            if op.name == ORDINAL:
                op.attributes["ordinal"] = IntegerAttr.get(op.attributes["ordinal"].type, 0)
            return WalkResult.ADVANCE

        module_op.walk(spoil)
        assert numbers(module_op) != right
        mend_workloads(module_op)
        assert numbers(module_op) == right
        assert context is module_op.context


def test_a_size_that_nobody_passes_is_refused(tmp_path: Path) -> None:
    with Context():
        module_op = Module.parse(sources(tmp_path, torch.relu, (ROWS, 4))).operation

        def spoil(op: Operation) -> WalkResult:
            if op.name == ORDINAL:
                with InsertionPoint(op), op.location:
                    index = op.operands[0].type
                    value = {"value": IntegerAttr.get(index, 77)}
                    other = Operation.create("arith.constant", [index], attributes=value)
                op.operands[0] = other.result
            return WalkResult.ADVANCE

        module_op.walk(spoil)
        with pytest.raises(CompilerFailed, match=r"numbers the sizes of main.* wrongly"):
            mend_workloads(module_op)


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


@pytest.mark.parametrize("mended", [True, False])
def test_results_are_right_with_the_change_only(
    mended: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rotary embedding was zero past the eighth position."""
    if not mended:
        monkeypatch.setattr(Changes, "by_phase", lambda self: iter(()))
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
    assert (max(differences) < 1e-4) is mended
