"""The back end that torch.compile knows as `pelton`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import torch
from torch.fx import GraphModule

from ..compat import dynamo
from ..spec.errors import PeltonError
from .compile import compile_graph
from .legalize import DECOMPOSED_FIRST
from .options import Options, read_options


def backend(
    module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a graph of TorchDynamo: what `torch.compile(model, backend="pelton")` calls.

    Forward and backward graphs are compiled; parameters and buffers are read at each call. A graph
    that cannot be compiled runs in eager, with one warning that says why.

    Args:
        module: The graph.
        example_inputs: Its inputs, as torch traces with.
        options: `target` (default: by the device of the inputs), `fallback` (False: a graph that
            cannot be compiled is an error), `cache_dir`, `timing_cache_file_path`, and options of
            the target.
        mode: Only `default`.

    Returns:
        A function that computes the same as the graph. Where options are wrong, a device is not
        there, or without fallback, it raises that error: torch would wrap it if it came from here.

    Example:
        >>> double = torch.compile(lambda x: 2 * x, backend="pelton")
        >>> double(torch.ones(3))
        tensor([2., 2., 2.])
    """
    try:
        found = read_options(options, mode, _device_of(example_inputs))
        return _through_autograd(module, example_inputs, found)
    except PeltonError as error:
        return functools.partial(_raise, error)


def _raise(error: PeltonError, *_: Any) -> NoReturn:
    raise error.with_traceback(None)


def _device_of(inputs: Sequence[Any]) -> str:
    kinds = [value.device.type for value in inputs if isinstance(value, torch.Tensor)]
    return "cuda" if "cuda" in kinds else "cpu"


def _through_autograd(
    module: GraphModule, example_inputs: Sequence[Any], options: Options
) -> Callable[..., Any]:
    """Compile the forward graph now, and the backward graph when AOTAutograd asks for it."""
    compiler = dynamo.aot_autograd(
        fw_compiler=functools.partial(compile_graph, options=options),
        partition_fn=dynamo.min_cut_partition(),
        decompositions=DECOMPOSED_FIRST,
    )
    compiled: Callable[..., Any] = compiler(module, example_inputs)
    return compiled
