"""Raising: the MLIR module becomes torch.fx graphs, and these become ONNX models."""
