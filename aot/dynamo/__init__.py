"""`torch.compile(model, backend="pelton")`: graphs of TorchDynamo, compiled and called in place."""

from .backend import backend
from .explain import Explanation, explain

__all__ = ["Explanation", "backend", "explain"]
