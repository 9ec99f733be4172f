"""Re-export of a raised graph to an `ExportedProgram`, with its dynamic dimensions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.export import Dim as TorchDim
from torch.export import ExportedProgram

from pelton.runtime.call.signature import TensorSpec
from pelton.runtime.call.sizes import Dim, Size, evaluate, linear

from ..capture.trace import TRACING_LOCK, tracing_settings
from ..compat.dynamo import is_user_error
from ..compat.modules import share_members
from ..spec.errors import DynamicShapeError, ExportError
from ..spec.sizes import is_static
from .fx import Port, Raised

UNBOUNDED = 2**31 - 1
"""The largest size that a dimension without a bound is taken to have."""


def reexport(raised: Raised) -> ExportedProgram:
    """Return a raised graph as an `ExportedProgram`; its inputs and outputs are the graph's.

    Args:
        raised: The graph, raised without effects.

    Raises:
        DynamicShapeError: The program would fix a size that may vary.
        ExportError: torch cannot trace the graph.
    """
    first: Exception | None = None
    for sizes in _examples(raised):
        try:
            return _export(raised, sizes)
        except Exception as error:
            first = first or error
    assert first is not None
    text = " ".join(str(first).split())[:600]
    if is_user_error(first):
        raise DynamicShapeError(f"{raised.name}(): a size would be fixed: {text}") from first
    kind = type(first).__name__
    raise ExportError(f"{raised.name}() cannot be traced again: {kind}: {text}") from first


class _Interpreted(nn.Module):
    """A graph, run node by node, so that what is traced of it keeps the user's lines."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        super().__init__()
        share_members(self, graph_module)  # under their own names; torch.export exchanges them
        interpreter = fx.Interpreter(graph_module)

        def forward(*inputs: Any) -> Any:
            return interpreter.run(*inputs)

        forward.__signature__ = inspect.signature(graph_module.forward)  # type: ignore[attr-defined]
        self.__dict__["forward"] = forward


def _export(raised: Raised, sizes: Mapping[str, int]) -> ExportedProgram:
    dims = {dim.name: _torch_dim(dim) for dim in raised.dims}
    examples = tuple(_example(port, sizes) for port in raised.inputs)
    shapes = tuple(_dynamic_shape(port, dims) for port in raised.inputs)
    with TRACING_LOCK, tracing_settings(), fx.traceback.preserve_node_meta():
        return torch.export.export(
            _Interpreted(raised.graph_module),
            examples,
            dynamic_shapes=shapes if shapes else None,
            strict=False,
            prefer_deferred_runtime_asserts_over_guards=True,
        )


def _examples(raised: Raised) -> list[dict[str, int]]:
    """Return sizes to trace with: first the optimal ones, then such that no two are equal."""
    fixed = {
        size
        for leaf in (*raised.signature.inputs, *raised.signature.results)
        if isinstance(leaf, TensorSpec)
        for size in leaf.shape
        if is_static(size)
    }
    optimal = {
        dim.name: dim.opt for dim in raised.dims if dim.opt is not None and dim.opt not in (0, 1)
    }
    different = _different(raised.dims, fixed, {})
    return [_different(raised.dims, fixed, optimal), different] if optimal else [different]


def _different(dims: Sequence[Dim], fixed: set[int], given: Mapping[str, int]) -> dict[str, int]:
    sizes = dict(given)
    used = fixed | set(given.values())
    for dim in dims:
        if dim.name not in sizes:
            low = max(dim.min, 2)
            high = low + len(used) + 1 if dim.max is None else dim.max
            free = (size for size in range(low, high + 1) if size not in used)
            sizes[dim.name] = next(free, min(low, high))
            used.add(sizes[dim.name])
    return sizes


def _torch_dim(dim: Dim) -> Any:
    name = re.sub(r"\W", "_", dim.name)
    name = name if name.isidentifier() else f"d_{name}"
    return TorchDim(name, min=dim.min, max=UNBOUNDED if dim.max is None else dim.max)


def _example(port: Port, sizes: Mapping[str, int]) -> Any:
    if port.is_python_number:
        size = None if port.size is None else evaluate(port.size, sizes)
        return 3 if size is None else size
    shape = [evaluate(size, sizes) for size in port.shape]
    return torch.zeros([3 if size is None else size for size in shape], dtype=port.dtype)


def _dynamic_shape(port: Port, dims: Mapping[str, Any]) -> Any:
    if port.is_python_number:
        return TorchDim.DYNAMIC
    axes = {
        axis: _dynamic_size(size, dims)
        for axis, size in enumerate(port.shape)
        if not is_static(size)
    }
    return axes or None


def _dynamic_size(size: Size, dims: Mapping[str, Any]) -> Any:
    found = linear(size)
    if found is None or found[0] not in dims:
        return TorchDim.AUTO
    name, factor, offset = found
    scaled = factor * dims[name] if factor != 1 else dims[name]
    if offset == 0:
        return scaled
    return scaled + offset if offset > 0 else scaled - -offset
