"""TorchDynamo, AOTAutograd and Inductor, loaded on first use.

Loading TorchDynamo takes as long as all else of ours.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


@functools.cache
def compile_lock() -> threading.RLock:
    """Return the lock that TorchDynamo holds while it compiles."""
    from torch._dynamo import convert_frame

    lock: threading.RLock = getattr(convert_frame, "compile_lock", threading.RLock())
    return lock


def aot_autograd(**options: Any) -> Callable[..., Any]:
    """Return a back end of TorchDynamo that splits a graph into a forward and a backward graph.

    Args:
        options: `fw_compiler`, which compiles graphs, `decompositions`, `partition_fn`.
    """
    from torch._dynamo.backends.common import aot_autograd as through_autograd

    backend: Callable[..., Any] = through_autograd(**options)
    return backend


def min_cut_partition() -> Callable[..., Any]:
    """Return the partitioner that recomputes values in the backward graph where that is cheaper."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    return min_cut_rematerialization_partition


def mark_boxed(call: Function) -> Function:
    """Mark a function as one that takes its arguments in one list, as AOTAutograd asks."""
    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def optimize(
    backend: Callable[..., Any], on_guards: Callable[[Any], Any]
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that compiles a function by TorchDynamo.

    Args:
        backend: Takes each graph and its example inputs, and returns what computes it.
        on_guards: Called with the guards of each graph.
    """
    compiled: Any = torch._dynamo.optimize(backend, guard_export_fn=on_guards)
    return compiled  # type: ignore[no-any-return]


def reset() -> None:
    """Forget what TorchDynamo has compiled."""
    torch._dynamo.reset()


def is_user_error(error: BaseException) -> bool:
    """Return whether an error is torch's report of a program that it cannot trace as asked."""
    return isinstance(error, torch._dynamo.exc.UserError)


def maybe_mark_dynamic(tensor: torch.Tensor, axis: int) -> None:
    """Let a size of an example be dynamic in torch.compile, unless the program needs it fixed."""
    torch._dynamo.maybe_mark_dynamic(tensor, axis)


def inductor() -> Callable[..., Any]:
    """Return torch's own back end of torch.compile, which takes a graph and its inputs."""
    from torch._inductor.compile_fx import compile_fx

    return compile_fx
