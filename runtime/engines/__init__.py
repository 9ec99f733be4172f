"""Engines that run artifacts: IREE, TensorRT, onnxruntime."""
