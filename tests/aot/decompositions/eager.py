"""Comparison of decompositions, run by eager torch, with the operators that they decompose."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pelton.aot.decompositions.table import corrections


class Decomposed(TorchDispatchMode):
    """Runs our decompositions in place of the operators, and of those that they consist of."""

    def __init__(self) -> None:
        super().__init__()
        self.table = corrections()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        function = self.table.get(func)
        if function is not None:
            with self:
                result = function(*args, **(kwargs or {}))
            if result is not NotImplemented:
                return result
        return func(*args, **(kwargs or {}))


def _while_loop(condition: Any, body: Any, carried: Any, around: Any) -> Any:
    """Run a loop as it is written; torch's own compiles it with Dynamo first."""
    while condition(*carried, *around):
        carried = body(*carried, *around)
    return carried


def decompose(operator: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Return what the decomposition of an operator gives; `NotImplemented` where there is none."""
    function = corrections().get(operator)
    if function is None:
        return NotImplemented
    with patch.object(torch.ops.higher_order, "while_loop", _while_loop):
        return function(*args, **kwargs)


def compare(
    operator: OpOverload,
    *args: Any,
    nested: bool = False,
    rtol: float | None = None,
    atol: float | None = None,
    signs: bool = False,
    **kwargs: Any,
) -> None:
    """Assert that an operator's decomposition gives what the operator gives.

    Args:
        operator: An operator of ATen or prims with a decomposition.
        args: Its arguments.
        nested: Also decompose the operators that the decomposition consists of.
        rtol: The relative tolerance; None: that of `torch.testing` for the element type.
        atol: The absolute tolerance, given together with `rtol`.
        signs: Compare the signs of zeros as well.
        kwargs: Its keyword arguments.
    """
    wanted = tree_leaves(operator(*args, **kwargs))
    if nested:
        with Decomposed():
            result = operator(*args, **kwargs)
    else:
        result = decompose(operator, *args, **kwargs)
    assert result is not NotImplemented, f"{operator} is not decomposed"
    found = tree_leaves(result)
    assert len(found) == len(wanted)
    for have, want in zip(found, wanted, strict=True):
        torch.testing.assert_close(have, want, rtol=rtol, atol=atol, equal_nan=True)
        if signs:
            known = ~torch.isnan(want)
            torch.testing.assert_close(torch.signbit(have[known]), torch.signbit(want[known]))
