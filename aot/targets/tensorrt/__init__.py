"""TensorRT engines from exported modules: MLIR to fx to ONNX to TensorRT's parser and builder."""

from .options import TensorRTOptions
from .target import TensorRTTarget

__all__ = ["TensorRTOptions", "TensorRTTarget"]
