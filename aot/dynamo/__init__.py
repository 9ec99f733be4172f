"""`torch.compile(model, backend="pelton")`: graphs of TorchDynamo, compiled and called in place."""

from .backend import backend

__all__ = ["backend"]
