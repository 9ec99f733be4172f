"""Standard custom operators: printing at run time, and transfers to a device."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch
from iree.compiler.dialects import flow
from iree.compiler.ir import RankedTensorType, Value

from ..ir.affinity import affinity_attribute
from ..lowering.custom.bodies import BodyBuilder
from ..spec.tensor_traits import DeviceAffinity
from .define import custom_op


def _show(key: str, tensor: torch.Tensor) -> None:
    print(f"=== {key} ===", tensor, sep="\n", file=sys.stderr)


def _trace_body(builder: BodyBuilder, key: str, tensor: Value) -> None:
    flow.TensorTraceOp(key, [tensor], _sizes(builder, tensor))


def _transfer_body(
    builder: BodyBuilder, tensor: Value, ordinal: Any, queues: Sequence[int] | None
) -> Value:
    affinity = affinity_attribute(DeviceAffinity(ordinal, queues), tensor.type.context)
    return flow.TensorTransferOp(tensor, _sizes(builder, tensor), affinity).result


def _sizes(builder: BodyBuilder, tensor: Value) -> list[Value]:
    return [builder.sizes[f"d{axis}"] for axis in range(RankedTensorType(tensor.type).rank)]


_TRACE = custom_op(
    "pelton::trace_tensor(str key, Tensor tensor) -> ()",
    shapes="... ->",
    body=_trace_body,
    eager=_show,
)

_TRANSFER = custom_op(
    "pelton::transfer_to_device(Tensor tensor, int ordinal, int[]? queues=None) -> Tensor",
    shapes="... -> ...",
    body=_transfer_body,
    eager=lambda tensor, ordinal, queues=None: tensor.clone(),
)
_TRANSFER.register_autograd(lambda ctx, gradient: (gradient, None, None))


def trace_tensor(key: str, tensor: torch.Tensor) -> None:
    """Print a tensor to stderr under the title `=== key ===`, whenever the program gets there.

    Args:
        key: The title.
        tensor: The tensor, of any shape and element type that IREE prints.

    Example:
        >>> def double(x):
        ...     trace_tensor("x", x)
        ...     return x + x
        >>> "flow.tensor.trace" in str(aot.export(double, args=(torch.ones(2),)).mlir_module)
        True
    """
    _TRACE(key, tensor)


def transfer_to_device(tensor: torch.Tensor, device: int | DeviceAffinity) -> torch.Tensor:
    """Return a tensor on another device of the program; what is computed of it runs there.

    In eager it is a copy on the same device: a program's devices are those of `runtime.load`.

    Args:
        tensor: The tensor, of any shape and element type.
        device: The device, by number or as a `DeviceAffinity`, which may name queues.

    Raises:
        ExportError: The number is negative or no int.

    Example:
        >>> def split(x):
        ...     return transfer_to_device(x + 1, 1) * 2
        >>> "#hal.device.promise<@__device_1>" in str(
        ...     aot.export(split, args=(torch.ones(2),)).mlir_module
        ... )
        True
    """
    where = device if isinstance(device, DeviceAffinity) else DeviceAffinity(device)
    queues = None if where.queues is None else list(where.queues)
    moved: torch.Tensor = _TRANSFER(tensor, where.ordinal, queues)
    return moved
