"""Jittables: torch functions that procedures call, traced once per signature and shared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ...compat.decomposition_tables import get_decompositions
from ...decompositions import current_aot_decompositions
from ...spec.errors import ExportError
from ...spec.locations import user_location
from ..fx_passes import PASSES
from ..values.current import ir_trace_or_none
from ..values.services import TraceServices
from .captured import Callee
from .programs import call


class jittable:
    """A torch function that procedures can call.

    The first call with arguments of some types traces it with torch.export into one private
    function of the module; further calls with the same types share that function. It receives
    traced integers as Python integers (at least 0) and other traced scalars as 0-d tensors; Python
    values are constants. Tensors that it closes over, and the parameters of the module if it is a
    bound method, are globals of the module. An in-place operation on an argument changes the
    procedure's value. Outside of procedures it is the plain function.

    Args:
        wrapped_f: The function, or a bound method of an `nn.Module`.
        decompose_ops: Operators to decompose as torch does, in addition to the current table.
        decomposition_table: The decompositions to use instead of the current table.
        dynamic_shapes: Sizes that are dynamic even where they are static in the call, by
            parameter, as for `torch.export.export`; one function then serves several sizes.
        function_name: Name of the function in the module; default: its own.
        passes: Names of passes to run on it; `functorch_functionalize` always runs.

    Raises:
        ExportError: A pass is unknown, or `wrapped_f` cannot be called.

    Example:
        >>> @jittable
        ... def double(x):
        ...     return x + x
        >>> double(torch.ones(2))
        tensor([2., 2.])
    """

    def __init__(
        self,
        wrapped_f: Callable[..., Any],
        *,
        decompose_ops: Sequence[Any] | None = None,
        decomposition_table: Mapping[Any, Callable[..., Any]] | None = None,
        dynamic_shapes: Mapping[str, Any] | None = None,
        function_name: str | None = None,
        passes: Sequence[str] = ("functorch_functionalize",),
    ) -> None:
        unknown = [name for name in passes if name not in PASSES]
        if unknown:
            raise ExportError(
                f"unknown pass {unknown[0]!r}; known: {', '.join(PASSES)}",
                location=user_location(),
            )
        if not callable(wrapped_f):
            raise ExportError(
                f"jittable takes a function, got {wrapped_f!r}", location=user_location()
            )
        table = dict(decomposition_table or {})
        if decomposition_table is None:
            table = current_aot_decompositions()
        if decompose_ops:
            table.update(get_decompositions(list(decompose_ops)))
        self.wrapped_f = wrapped_f
        self.decomposition_table: Mapping[Any, Callable[..., Any]] = table
        self.dynamic_shapes: dict[str, Any] = dict(dynamic_shapes or {})
        self.function_name = function_name or _name_of(wrapped_f)
        self.passes = tuple(passes)
        self.__doc__ = getattr(wrapped_f, "__doc__", None)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Emit a call while a procedure is traced, else call the function."""
        trace = ir_trace_or_none()
        if trace is None:
            return self.wrapped_f(*args, **kwargs)
        return self.resolve_call(trace, *args, **kwargs)

    def resolve_call(
        self,
        proc_trace: TraceServices,
        *py_args: Any,
        dynamic_shapes: Mapping[str, Any] | None = None,
        **py_kwargs: Any,
    ) -> Any:
        """Emit a call in a procedure; return its result with traced values in it.

        Args:
            proc_trace: The procedure that calls.
            py_args: Traced values, tensors, constants, collections of globals, and containers.
            dynamic_shapes: Further dynamic sizes, by parameter.
            py_kwargs: Keyword arguments of the same kinds.

        Raises:
            ExportError: The function cannot be traced with such arguments.
        """
        shapes = {**self.dynamic_shapes, **(dynamic_shapes or {})}
        callee = Callee(
            self.wrapped_f,
            self.function_name,
            key=(self, repr(shapes)),
            decompositions=self.decomposition_table,
            dynamic_shapes=shapes or None,
        )
        return call(proc_trace, callee, py_args, py_kwargs)

    def __repr__(self) -> str:
        return f"<jittable {self.function_name}>"


def _name_of(function: Callable[..., Any]) -> str:
    owner = function if isinstance(function, torch.nn.Module) else None
    name = type(owner).__name__ if owner is not None else getattr(function, "__name__", "function")
    return name.replace("<lambda>", "lambda")
