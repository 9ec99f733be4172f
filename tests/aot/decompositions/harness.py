"""Compile several functions of the same arguments at once and compare each with eager torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from pelton import aot, runtime

Arguments = Sequence[torch.Tensor]

_TOLERANCES = {
    torch.float64: {"rtol": 1e-10, "atol": 1e-12},
    torch.float32: {"rtol": 1e-4, "atol": 1e-5},
    torch.float16: {"rtol": 1e-2, "atol": 1e-2},
    torch.bfloat16: {"rtol": 3e-2, "atol": 3e-2},
    torch.complex64: {"rtol": 1e-4, "atol": 1e-5},
}


class _All(torch.nn.Module):
    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        super().__init__()
        self.functions = dict(functions)

    def forward(self, *args: torch.Tensor) -> dict[str, Any]:
        return {name: function(*args) for name, function in self.functions.items()}


def check(
    functions: Mapping[str, Callable[..., Any]], *calls: Arguments, dynamic: Any = None
) -> None:
    """Assert that each function gives what eager gives, for all calls.

    Args:
        functions: Functions of the arguments, by a name for messages.
        calls: Arguments of each call; the first are the example of the export.
        dynamic: Which sizes of each argument vary.
    """
    module = _All(functions)
    shapes = None if dynamic is None else {"args": tuple(dynamic)}
    output = aot.export(module, args=list(calls[0]), dynamic_shapes=shapes)
    executable = runtime.load(bytes(output.compile().map_memory()))
    for call in calls:
        wanted = module(*call)
        got = executable(*call)
        for name, want in wanted.items():
            _assert_same(name, want, got[name])


def _assert_same(name: str, wanted: Any, got: Any) -> None:
    for want, have in zip(_leaves(wanted), _leaves(got), strict=True):
        tolerance = _TOLERANCES.get(want.dtype, {"rtol": 0, "atol": 0})
        torch.testing.assert_close(
            have, want, equal_nan=True, msg=lambda text: f"{name}: {text}", **tolerance
        )


def _leaves(value: Any) -> list[torch.Tensor]:
    return [value] if isinstance(value, torch.Tensor) else list(value)
