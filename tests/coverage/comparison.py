"""Export, compile, load, call, and compare with eager torch."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from pelton import aot, runtime

from .isolation import Outcome

TOLERANCES: dict[torch.dtype, tuple[float, float]] = {
    torch.float32: (1e-3, 1e-4),
    torch.float64: (1e-6, 1e-8),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (3e-2, 3e-2),
    torch.complex64: (1e-3, 1e-4),
    torch.complex128: (1e-6, 1e-8),
}
"""Relative and absolute tolerance by element type; other types must be equal."""

OPTIMIZATION_LEVEL = 1
"""Level to compile at: coverage asks what lowers, and right, not how fast it is."""

Arguments = tuple[torch.Tensor, ...]


def check(
    target: Callable[..., Any],
    calls: Sequence[Arguments],
    dynamic: Any = None,
    *,
    values: bool = True,
) -> Outcome:
    """Export a function at its first arguments and compare all calls with eager.

    Args:
        target: Takes and returns tensors.
        calls: Arguments of the calls; the first are the example.
        dynamic: Which sizes vary, as `aot.export` takes it.
        values: Compare the numbers, not only types and shapes.
    """
    try:
        wanted = [_leaves(target(*_copies(call))) for call in calls]
    except Exception as error:
        return Outcome("unmeasured", "eager", _words(error))
    try:
        output = aot.export(target, args=calls[0], dynamic_shapes=dynamic)
    except Exception as error:
        return _refusal("export", error)
    try:
        binary = output.compile(optimization_level=OPTIMIZATION_LEVEL)
    except Exception as error:
        return _refusal("compile", error)
    assert binary is not None
    try:
        executable = runtime.load(bytes(binary.map_memory()))
    except Exception as error:
        return _refusal("load", error)
    for call, want in zip(calls, wanted, strict=True):
        try:
            got = _leaves(executable(*_copies(call)))
        except Exception as error:
            return _refusal("run", error)
        difference = _difference(want, got, values)
        if difference and _difference(_in_double(target, call, want), got, values):
            return Outcome("wrong", "compare", difference)
    return Outcome("ok")


def _in_double(target: Callable[..., Any], call: Arguments, wanted: list[Any]) -> list[Any]:
    """Return the results of eager in float64, which decides where float32 itself is off."""
    wide = [
        value.double()
        if isinstance(value, torch.Tensor) and value.dtype == torch.float32
        else value
        for value in _copies(call)
    ]
    try:
        exact = _leaves(target(*wide))
    except Exception:
        return wanted
    return [
        value.to(like.dtype) if isinstance(like, torch.Tensor) else value
        for value, like in zip(exact, wanted, strict=True)
    ]


def _widened(value: Any) -> Any:
    single = isinstance(value, torch.Tensor) and value.dtype is torch.float32
    return value.double() if single else value


def _copies(call: Arguments) -> list[Any]:
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in call]


def _leaves(result: Any) -> list[Any]:
    return torch.utils._pytree.tree_leaves(result)


def _refusal(stage: str, error: Exception) -> Outcome:
    status = "refused" if isinstance(error, aot.PeltonError) else "failed"
    operators = getattr(error, "operators", ())
    named = f"[{', '.join(operators)}] " if operators else ""
    return Outcome(status, stage, named + _words(error))


def _words(error: Exception) -> str:
    """Return the error in one line, without the paths of this machine."""
    text = " ".join(str(error).split())
    text = re.sub(r" Reproducer: \S+( \(command\.txt, diagnostics\.txt\))?", "", text)
    text = re.sub(r"(/[\w.+-]+)+/([\w.+-]+)", r"\2", text)
    return f"{type(error).__name__}: {text}"[:300]


def _difference(wanted: list[Any], got: list[Any], values: bool) -> str:
    if len(wanted) != len(got):
        return f"{len(got)} results, {len(wanted)} wanted"
    for position, (want, have) in enumerate(zip(wanted, got, strict=True)):
        if not isinstance(want, torch.Tensor):
            if want != have:
                return f"result {position} is {have!r}, {want!r} wanted"
            continue
        if want.dtype != have.dtype or want.shape != have.shape:
            return (
                f"result {position} is {have.dtype}{list(have.shape)}, "
                f"{want.dtype}{list(want.shape)} wanted"
            )
        rtol, atol = TOLERANCES.get(want.dtype, (0.0, 0.0))
        if not values or torch.allclose(have, want, rtol, atol, equal_nan=True):
            continue
        worst = (have.to(torch.complex128) - want.to(torch.complex128)).abs()
        return f"result {position} differs by up to {worst.nan_to_num(torch.inf).max():.3g}"
    return ""
