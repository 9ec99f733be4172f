"""The back end that torch.compile knows as `pelton`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule

from pelton.runtime.executable import load
from pelton.runtime.progress import stage

from ..capture import TRACING_LOCK
from ..errors import CompileError, ExportError, PeltonError, UnsupportedOpError
from ..export import export
from .compiled import GraphCall, Run, boxed, call_of
from .graph import Parts, take_apart
from .legalize import DECOMPOSED_FIRST, with_whole_attention, without_strides
from .notices import tell_fallback
from .options import Options, read_options
from .random_numbers import draw_outside

_UNFIT = (UnsupportedOpError, ExportError, CompileError)
"""What a graph that cannot be compiled raises; all else is a fault of options or devices."""


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
        >>> import torch
        >>> double = torch.compile(lambda x: 2 * x, backend="pelton")
        >>> double(torch.ones(3))
        tensor([2., 2., 2.])
    """
    try:
        found = read_options(options, mode, _device_of(example_inputs))
        return _compile(module, example_inputs, found)
    except PeltonError as error:
        return functools.partial(_raise, error)


def _raise(error: PeltonError, *_: Any) -> NoReturn:
    raise error.with_traceback(None)


def _device_of(inputs: Sequence[Any]) -> str:
    kinds = [value.device.type for value in inputs if isinstance(value, torch.Tensor)]
    return "cuda" if "cuda" in kinds else "cpu"


def _compile(
    module: GraphModule, example_inputs: Sequence[Any], options: Options
) -> Callable[..., Any]:
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd

    compiler = functools.partial(compile_graph, options=options)
    through_autograd = aot_autograd(
        fw_compiler=compiler,
        partition_fn=min_cut_rematerialization_partition,
        decompositions=DECOMPOSED_FIRST,
    )
    compiled: Callable[..., Any] = through_autograd(module, example_inputs)
    return compiled


def compile_graph(module: GraphModule, _: Sequence[Any], *, options: Options) -> GraphCall:
    """Compile a graph of AOTAutograd.

    Args:
        module: The graph.
        options: What the user asked for.

    Returns:
        A function of the list of inputs: the compiled graph, or where that is not possible and a
        fallback allowed, the graph itself.

    Raises:
        UnsupportedOpError: Without fallback: operators have no lowering.
        ExportError: Without fallback: the graph cannot be compiled for another reason.
        CompileError: Without fallback: the compiler failed.
    """
    try:
        refuse_devices(module, options)
        with TRACING_LOCK:
            plain, draws = draw_outside(with_whole_attention(without_strides(module)))
            parts = take_apart(plain)
            run = _program(parts, options)
    except _UNFIT as error:
        if not options.fallback:
            raise
        tell_fallback(module, error, options.target)
        return _in_eager(module)
    return call_of(parts, run, draws)


def _program(parts: Parts, options: Options) -> Run:
    """Compile and load the program of a graph."""
    if parts.program is None:
        return lambda _: []
    exported = export(parts.program)
    with options.recipe.private_file() as path:
        with stage(f"compiling for {options.target}"):
            options.recipe.make(exported.mlir_module, exported.resources, path, private=True)
        device = "local-sync" if options.device == "cpu" and is_small(parts.program) else None
        (function,) = load(path, device=device).functions.values()
    return function.call_leaves


_SMALL = 1 << 13


def is_small(program: ExportedProgram) -> bool:
    """Tell whether a program is done sooner than threads could be woken for it.

    Args:
        program: One whose values hold few elements, all of known sizes, is.
    """
    elements = 0
    for node in program.graph.nodes:
        value = node.meta.get("val")
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor):
                if any(isinstance(size, torch.SymInt) for size in item.shape):
                    return False
                elements += item.numel()
    return elements < _SMALL


def refuse_devices(module: GraphModule, options: Options) -> None:
    """Refuse a graph with tensors on another device than the target's.

    Raises:
        UnsupportedOpError: Names the devices.
    """
    devices = set()
    for node in module.graph.nodes:
        value = node.meta.get("val")
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor):
                devices.add(item.device)
    if len(devices) > 1 or any(device.type != options.device for device in devices):
        listed = ", ".join(sorted(map(str, devices)))
        raise UnsupportedOpError(
            f"the graph has tensors on {listed}; target {options.target!r} takes them on one "
            f"{options.device} device"
        )


def _in_eager(module: GraphModule) -> GraphCall:
    interpreter = torch.fx.Interpreter(module)
    return boxed(lambda arguments: interpreter.boxed_run(arguments))
