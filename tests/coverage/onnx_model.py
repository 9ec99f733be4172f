"""The ONNX form of an export, run by onnxruntime."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir
import onnxruntime
import torch

from pelton import aot


class OnnxModel:
    """A stateless program as an ONNX model, called with tensors.

    onnxruntime has few operators of bfloat16 on processors: a model that has any is run as its
    float32 twin, the same graph with the other type, and its results are rounded.
    """

    def __init__(self, output: aot.ExportOutput) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.program = output.to_onnx(Path(folder, "model.onnx"))
            self.twin = _become_float32_twin(self.program.model)
            path = Path(folder, "run.onnx")
            onnx_ir.save(self.program.model, path)
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = 1
            options.log_severity_level = 4
            self.session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"]
            )

    def __call__(self, *tensors: torch.Tensor) -> Any:
        """Return the results, tensors in the type of the program."""
        feeds = {
            port.name: np.asarray(tensor.float() if self._widened(port.dtype) else tensor)
            for port, tensor in zip(self.program.inputs, tensors, strict=True)
        }
        values = self.session.run(None, feeds)
        return [
            torch.from_numpy(np.array(value)).to(port.dtype) if self._widened(port.dtype)
            else torch.from_numpy(np.array(value))
            for port, value in zip(self.program.outputs, values, strict=True)
        ]  # fmt: skip

    def _widened(self, dtype: torch.dtype) -> bool:
        return self.twin and dtype is torch.bfloat16


def _become_float32_twin(model: onnx_ir.Model) -> bool:
    """Put float32 for bfloat16 throughout a model; return whether there was any."""
    narrow, wide = onnx_ir.DataType.BFLOAT16, onnx_ir.DataType.FLOAT
    found = False
    for value in _values(model.graph):
        if value.dtype == narrow:
            value.dtype, found = wide, True
        if value.const_value is not None and value.const_value.dtype == narrow:
            value.const_value = _as_float32(value.const_value)
    for node in model.graph.all_nodes():
        for attribute in list(node.attributes.values()):
            if attribute.name in ("to", "dtype") and attribute.value == int(narrow):
                node.attributes[attribute.name] = onnx_ir.AttrInt64(attribute.name, int(wide))
            elif isinstance(attribute.value, onnx_ir.TensorProtocol):
                if attribute.value.dtype == narrow:
                    tensor = _as_float32(attribute.value)
                    node.attributes[attribute.name] = onnx_ir.AttrTensor(attribute.name, tensor)
    return found


def _values(graph: onnx_ir.Graph) -> list[onnx_ir.Value]:
    produced = [value for node in graph.all_nodes() for value in node.outputs]
    return [*graph.inputs, *graph.initializers.values(), *produced]


def _as_float32(tensor: Any) -> onnx_ir.Tensor:
    return onnx_ir.tensor(np.asarray(tensor.numpy()).astype(np.float32), name=tensor.name)
