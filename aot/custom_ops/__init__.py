"""Custom operators: defined by the user, with a body in MLIR."""

from ..lowering.custom.bodies import BodyBuilder
from ..lowering.custom.expand import expand_custom_ops
from .define import custom_op, register_body
from .standard import trace_tensor, transfer_to_device

__all__ = [
    "BodyBuilder",
    "custom_op",
    "expand_custom_ops",
    "register_body",
    "trace_tensor",
    "transfer_to_device",
]
