"""Contracts of onnxscript: its rewrite rules, and its conversion between versions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton.aot.compat.onnxscript import before_version_conversion, exact_rewrite_rules
from tests.contracts import contract

onnx_ir = pytest.importorskip("onnx_ir")
rewriter = pytest.importorskip("onnxscript.rewriter")

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch's own pytrees

SMALL = """
<ir_version: 10, opset_import: ["" : 20]>
small (float[2] x) => (float[2] y) {
    epsilon = Constant <value = float {1e-12}> ()
    y = Add(x, epsilon)
}
"""


def operators_of(model: Any) -> list[str]:
    return [node.op_type for node in model.graph]


@contract(
    "onnxscript.rewriter._DEFAULT_REWRITE_RULES, rules.common._no_op",
    breaks="ONNX models: x + 1e-12 of a normalisation would be removed",
)
def test_small_constants_stay_where_rules_are_exact() -> None:
    rules = exact_rewrite_rules()
    assert len(rules) > 10
    kept = rewriter.rewrite(onnx_ir.from_onnx_text(SMALL), rules)
    assert "Add" in operators_of(kept)
    assert "Add" not in operators_of(rewriter.rewrite(onnx_ir.from_onnx_text(SMALL)))


class Double(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


@contract(
    "onnxscript.version_converter.ConvertVersionPass.call",
    breaks="ONNX of branches within loops, whose versions torch.onnx states two ways",
)
def test_models_are_seen_before_they_are_converted() -> None:
    converter = pytest.importorskip("onnxscript.version_converter")
    before = converter.ConvertVersionPass.call
    seen: list[int] = []

    def prepare(model: Any) -> None:
        seen.append(model.opset_imports[""])

    with before_version_conversion(prepare):
        converted = converter.ConvertVersionPass(21)(onnx_ir.from_onnx_text(SMALL)).model
    assert seen == [20] and converted.opset_imports[""] == 21
    assert converter.ConvertVersionPass.call is before

    with before_version_conversion(prepare):
        program = Double().eval()
        torch.onnx.export(program, (torch.ones(2),), dynamo=True, opset_version=23, verbose=False)
    assert len(seen) == 2, "torch.onnx converts by this pass"
