"""Contract of torch.onnx's registry of operators."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.compat.onnx_registry import operators_without_form
from tests.contracts import contract

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")  # of torch's own pytrees

pytest.importorskip("onnxscript")


class Bessel(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j0(x).relu()


@contract(
    "torch.onnx._internal.exporter: _registration.ONNXRegistry, _decomp",
    breaks="UnsupportedOpError of TensorRT and ONNX, which names all operators",
)
def test_operators_that_onnx_lacks_are_found() -> None:
    program = torch.export.export(Bessel(), (torch.ones(2),))
    missing = [str(operator) for operator in operators_without_form(program, opset=23)]
    assert missing == ["prims.bessel_j0.default"]
