"""Guards on sizes in torch's traces: where each arises, and none for queries of memory layouts.

A fake kernel computes sizes and strides of a result. Whether a size is 1 matters for strides, which
have no bearing on values; yet torch notes each answer as a guard, such as that the batch of a
convolution is larger than 1, and takes it for granted from then on.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import traceback
from torch.fx.experimental.symbolic_shapes import ShapeEnv, uninteresting_files

_torch: Any = torch
_NAMESPACES = ("aten", "prims")
_COPIES = ("aten.copy.default", "aten.copy_.default")
_QUERIES = (
    (_torch, "_debug_has_internal_overlap"),
    (_torch._C, "_conv_determine_backend_memory_format"),
)
_ORIGINS: WeakKeyDictionary[Any, dict[int, Any]] = WeakKeyDictionary()


class _Kernels(threading.local):
    """What a thread does in fake kernels.

    Attributes:
        of_torch: Whether it is in the kernel of one of torch's own operators.
        layouts: Whether it answers a query that is about memory layouts alone.
        operators: The operators whose kernels it is in, outermost first.
    """

    of_torch = False
    layouts = False

    def __init__(self) -> None:
        self.operators: list[str] = []

    def leaves_no_guard(self, condition: Any, examples: Mapping[Any, Any]) -> bool:
        """Return whether a condition on sizes is asked for a memory layout.

        Args:
            condition: The condition.
            examples: The sizes of the examples, by symbol.
        """
        if self.layouts:
            return _beyond_one(condition) is not None
        if not (self.of_torch and _tells_ones(condition)):
            return False
        # An example of size 1 may be broadcast, which must be known.
        return condition.xreplace(examples) is _beyond_one(condition)


def origins_of(environment: Any) -> Mapping[int, Any]:
    """Return what `traced_guards` noted of an environment's guards, by position."""
    return _ORIGINS.get(environment, {})


@contextlib.contextmanager
def traced_guards(origin: Callable[[str, str], Any]) -> Iterator[None]:
    """Note the origin of guards, and have none of queries of layouts, within a `with` block.

    Fake kernels of torch's operators tell sizes of 1 from others without guards, and a query that
    is about layouts alone sizes of 0 too. Guards of other comparisons, of programs and of
    decompositions are made as ever, and so are those of fake kernels of custom operators.

    Args:
        origin: Called for each guard as it arises. Takes the operator that is traced or decomposed,
            and the stack trace of the operator that is decomposed; each may be empty. `origins_of`
            gives what it returns.
    """
    uninteresting_files().add(__file__)  # torch notes the innermost other file with a guard
    kernels = _Kernels()
    classes: Any = (FakeTensorMode, ShapeEnv)
    mode, environment = classes
    dispatch, evaluate = mode.dispatch, environment.evaluate_expr
    queries = [getattr(owner, name) for owner, name in _QUERIES]

    def in_kernel(self: Any, operator: Any, *args: Any, **kwargs: Any) -> Any:
        before = kernels.of_torch, kernels.layouts
        kernels.of_torch = getattr(operator, "namespace", None) in _NAMESPACES
        kernels.layouts = str(operator) in _COPIES
        kernels.operators.append(str(operator))
        try:
            return dispatch(self, operator, *args, **kwargs)
        finally:
            kernels.operators.pop()
            kernels.of_torch, kernels.layouts = before

    def evaluated(self: Any, expression: Any, *args: Any, **kwargs: Any) -> Any:
        if kernels.leaves_no_guard(expression, self.backed_var_to_val):
            with self.suppress_guards():
                return evaluate(self, expression, *args, **kwargs)
        count = len(self.guards)
        result = evaluate(self, expression, *args, **kwargs)
        if len(self.guards) > count:
            meta = traceback.get_current_meta()
            operator = str(meta.get("original_aten", "")) or "".join(kernels.operators[:1])
            noted = origin(operator, meta.get("stack_trace") or "")
            _ORIGINS.setdefault(self, {})[count] = noted
        return result

    def about_layouts(query: Callable[..., Any]) -> Callable[..., Any]:
        def answer(*args: Any) -> Any:
            before, kernels.layouts = kernels.layouts, True
            try:
                return query(*args)
            finally:
                kernels.layouts = before

        return answer

    mode.dispatch, environment.evaluate_expr = in_kernel, evaluated
    for (owner, name), query in zip(_QUERIES, queries, strict=True):
        setattr(owner, name, about_layouts(query))
    try:
        yield
    finally:
        mode.dispatch, environment.evaluate_expr = dispatch, evaluate
        for (owner, name), query in zip(_QUERIES, queries, strict=True):
            setattr(owner, name, query)


@functools.lru_cache(maxsize=4096)
def _tells_ones(condition: Any) -> bool:
    """Return whether a condition on one size is the same for all sizes but 1."""
    beyond, symbols = _beyond_one(condition), getattr(condition, "free_symbols", ())
    try:
        return (
            beyond is not None
            and len(symbols) == 1
            and condition.subs(next(iter(symbols)), 0) is beyond
        )
    except ZeroDivisionError:
        return False


@functools.lru_cache(maxsize=4096)
def _beyond_one(condition: Any) -> Any:
    """Return the value of a condition that is the same for all sizes from 2 on; else None."""
    if not isinstance(condition, sympy.logic.boolalg.Boolean):
        return None
    larger = {symbol: _larger(symbol.name) for symbol in condition.free_symbols}
    value = condition.subs(larger)
    return value if value in (sympy.true, sympy.false) else None


def _larger(name: str) -> Any:
    return sympy.Symbol(f"{name}_beyond_2", integer=True, nonnegative=True) + 2
