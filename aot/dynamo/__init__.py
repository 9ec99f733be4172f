"""The `torch.compile` back end: graphs of TorchDynamo, compiled and called in place."""

from .explanation import Explanation, explain
from .torch_compile import backend

__all__ = ["Explanation", "backend", "explain"]
