"""The `self` of a procedure: a view of the class and of the module under construction."""

from __future__ import annotations

import difflib
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...compat.pytrees import tree_map_only
from ..calls.captured import Callee
from ..calls.jittable import jittable
from ..calls.programs import call
from ..globals.declaration import TrackedGlobal
from ..globals.live_globals import live
from ..values.services import TraceServices
from .module_decl import AnnotatedProcedure
from .module_state import ModuleState


class ProcedureSelf:
    """The `self` of a procedure.

    Globals are read as traced values and stored to by assignment; calls of procedures, jittables,
    modules and programs of the class emit calls; helpers, properties, static methods, constants
    and `super()` work as in the class.

    Args:
        module: The module under construction.
        trace: The trace of the procedure.
    """

    def __init__(self, module: ModuleState, trace: TraceServices) -> None:
        object.__setattr__(self, "_view", (module, trace))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # so that super() and isinstance() take the user's class
        module, _ = object.__getattribute__(self, "_view")
        return module.decl.cls

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            return object.__getattribute__(self, name)
        module, trace = object.__getattribute__(self, "_view")
        if name in module.globals:
            materialized = tree_map_only(
                TrackedGlobal, TrackedGlobal.materialize, module.globals[name]
            )
            return live(materialized, f"self.{name}")
        if name in module.callables:
            return functools.partial(_call, module, trace, name)
        return _from_class(self, module, trace, name)

    def __setattr__(self, name: str, value: Any) -> None:
        module, trace = object.__getattribute__(self, "_view")
        if name not in module.globals:
            trace.fail(
                f"self.{name} cannot be assigned: it is no global. Declare it in the class, as in "
                f"{name} = export_global(AbstractTensor(...), mutable=True){_hint(module, name)}"
            )
        trace.handle_assignment(f"self.{name}", getattr(self, name), value)

    def __repr__(self) -> str:
        module, trace = object.__getattribute__(self, "_view")
        return f"<self of {module.decl.cls.__qualname__}.{trace.name}()>"


def _call(
    module: ModuleState, trace: TraceServices, name: str, /, *args: Any, **kwargs: Any
) -> Any:
    return module.callables[name].call(trace, args, kwargs)


def _from_class(view: ProcedureSelf, module: ModuleState, trace: TraceServices, name: str) -> Any:
    try:
        value = inspect.getattr_static(module.decl.cls, name)
    except AttributeError:
        trace.fail(f"self.{name} is not declared in the class{_hint(module, name)}")
    if isinstance(value, jittable):
        return functools.partial(value.resolve_call, trace)
    if isinstance(value, torch.nn.Module):
        return ModuleMember(trace, value, name, f"_{name}")
    if isinstance(value, (types.FunctionType, AnnotatedProcedure)):
        return value.__get__(view, module.decl.cls)
    binds = getattr(type(value), "__get__", None)
    return value if binds is None else binds(value, view, module.decl.cls)


def _hint(module: ModuleState, name: str) -> str:
    close = difflib.get_close_matches(name, module.decl.names(), 1)
    return f"; did you mean self.{close[0]}?" if close else ""


class ModuleMember:
    """An `nn.Module` of the class, whose calls in procedures are traced.

    Args:
        trace: The trace of the procedure.
        module: The module.
        path: Its Python expression, without `self.`.
        state: Prefix of the symbols of its parameters and buffers.
    """

    def __init__(
        self, trace: TraceServices, module: torch.nn.Module, path: str, state: str
    ) -> None:
        self._member = (trace, module, path, state)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Emit a call of the module's `forward`."""
        trace, module, path, state = self._member
        return call(trace, Callee(module, path, state=state), args, kwargs)

    def __getattr__(self, name: str) -> Any:
        trace, module, path, state = self._member
        value = getattr(module, name)
        if isinstance(value, types.MethodType) and value.__self__ is module:
            return _method(trace, value, f"{path}.{name}", state)
        return self._part(value, name)

    def __getitem__(self, key: Any) -> Any:
        return self._part(self._member[1][key], str(key))  # type: ignore[index]

    def __iter__(self) -> Iterator[Any]:
        module = self._member[1]
        if isinstance(module, (torch.nn.ModuleDict, torch.nn.ParameterDict)):
            return iter(module.keys())
        return (self[key] for key in range(len(self)))

    def __len__(self) -> int:
        return len(self._member[1])  # type: ignore[arg-type]

    def _part(self, value: Any, name: str) -> Any:
        trace, _, path, state = self._member
        if isinstance(value, torch.nn.Module):
            return ModuleMember(trace, value, f"{path}.{name}", f"{state}.{name}")
        return value


def _method(trace: TraceServices, method: Any, path: str, state: str) -> Callable[..., Any]:
    def emit_call(*args: Any, **kwargs: Any) -> Any:
        return call(trace, Callee(method, path, state=state), args, kwargs)

    return emit_call
