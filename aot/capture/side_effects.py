"""Side effects of a traced function: changed globals, closures, attributes and arguments.

A compiled function repeats only what is computed with tensors. What Python changed while it was
traced is compared here before and after, so that it is refused instead of silently lost. What
leaves no trace in objects, such as printing or writing files, cannot be seen.

What a trace has changed is undone after it: a table that a module keeps for the next call would
otherwise be a tensor of the trace, without data.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import operator
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from ..spec.errors import ExportError, SourceLocation

_CONTAINERS = (dict, collections.OrderedDict, collections.defaultdict, list, collections.deque, set)
"""The containers whose contents are put back; others may not take what was in them."""

_TORCH_ATTRIBUTES = frozenset(vars(torch.nn.Module()))
"""What every module has: parameters, buffers and submodules, whose changes are state, and hooks."""


class SideEffects:
    """Watches what one function can reach: globals, closures, attributes, and its arguments.

    Args:
        function: The function, or the bound method.
        holder: The module that owns it, whose buffers are state and may change.
    """

    def __init__(self, function: Callable[..., Any], holder: torch.nn.Module | None) -> None:
        self._function = getattr(function, "__func__", function)
        self._owner = getattr(function, "__self__", None)
        self._holder = holder
        self._before: dict[str, _Snapshot] = {}

    def start(self, arguments: Mapping[str, Any]) -> None:
        """Take a snapshot of all reachable objects before a call.

        Args:
            arguments: The values that the function is called with, by name.
        """
        self._before = {name: _Snapshot(value) for name, value in self._places(arguments)}

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Compare after the call.

        Raises:
            ExportError: Something has changed; names all of it.
        """
        after = dict(self._places(arguments))
        changed = [
            name
            for name, value in after.items()
            if name not in self._before or not self._before[name].same(value)
        ]
        changed += [name for name in self._before if name not in after]
        changed = [name for name in changed if not _is_part(name, changed)]
        if changed:
            raise ExportError(
                f"the function changes {', '.join(changed)}, which a compiled function cannot do; "
                "return the new values, or keep tensors in buffers of a module (register_buffer), "
                "which are state",
                location=_location(self._function),
            )

    def _places(self, arguments: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, value in arguments.items():
            yield from _contents(f"argument {name}", value)
        if isinstance(self._owner, torch.nn.Module):
            yield from _attributes(self._owner, "self")
        elif self._owner is not None:
            yield from ((f"self.{k}", v) for k, v in getattr(self._owner, "__dict__", {}).items())
        if not isinstance(self._function, types.FunctionType):
            return
        for name, value in self._function.__globals__.items():
            yield f"global {name!r}", value
        for name, value in _reachable(self._function):
            yield from _contents(name, value)
            if isinstance(value, torch.nn.Module) and value is not self._holder:
                yield from _attributes(value, name)
                for key, tensor in value.state_dict(keep_vars=True).items():
                    yield f"{name}.{key}", tensor


@contextlib.contextmanager
def side_effects_undone(
    function: Callable[..., Any], holder: torch.nn.Module | None
) -> Iterator[None]:
    """Put back what a function can reach, after a `with` block in which it is called.

    Attributes of modules and other objects, and the contents of containers, are as they were, also
    where the block ends in an error. torch does so where a trace succeeds, for modules only.

    Args:
        function: The function, or the bound method.
        holder: The module that owns it.

    Example:
        >>> layer = torch.nn.ReLU()
        >>> with side_effects_undone(layer.forward, layer):
        ...     layer.table = torch.ones(2)
        >>> hasattr(layer, "table")
        False
    """
    plain = getattr(function, "__func__", function)
    roots = [holder, getattr(function, "__self__", None)]
    if isinstance(plain, types.FunctionType):
        roots += [value for _, value in _reachable(plain)]
    before = [(container, _copy(container)) for container in _containers(roots)]
    try:
        yield
    finally:
        for container, contents in before:
            if not _alike(container, contents):
                container.clear()
                (container.update if hasattr(container, "update") else container.extend)(contents)


def _containers(roots: Sequence[Any]) -> Iterator[Any]:
    """Yield each container that objects consist of: dicts of attributes, dicts, lists and sets."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        value = waiting.pop()
        if isinstance(value, (torch.Tensor, type, types.ModuleType)) or id(value) in seen:
            continue
        seen.add(id(value))
        if type(value) in _CONTAINERS:
            yield value
        if isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple, collections.deque)):
            waiting.extend(value)
        elif isinstance(value, torch.nn.Module) or _is_of_user(value):
            waiting.append(vars(value))


def _is_of_user(value: Any) -> bool:
    """Return whether an object has attributes, and is neither a function nor torch's or ours."""
    package = type(value).__module__.partition(".")[0]
    return isinstance(getattr(value, "__dict__", None), dict) and package not in _FOREIGN


_FOREIGN = ("torch", "pelton", "builtins", "functools")


def _copy(container: Any) -> Any:
    return dict(container) if isinstance(container, dict) else list(container)


def _alike(container: Any, contents: Any) -> bool:
    """Return whether a container still has the same objects, in the same order."""
    now, then = _items(container), _items(contents)
    return len(now) == len(then) and all(map(operator.is_, now, then))


def _is_part(name: str, others: Sequence[str]) -> bool:
    """Return whether a place is part of another one: `x[0]` is part of `x`."""
    return any(name.startswith((f"{other}[", f"{other}.")) for other in others)


class _Snapshot:
    """What an object was: its identity, its items where it is a container, a tensor's version."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self._items = _items(value)
        self._version = version_of(value)

    def same(self, value: Any) -> bool:
        if value is not self._value or version_of(value) != self._version:
            return False
        items = _items(value)
        return len(items) == len(self._items) and all(map(operator.is_, items, self._items))


def _items(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return [*value.keys(), *value.values()]
    return list(value) if isinstance(value, (list, set, collections.deque)) else ()


def version_of(value: Any) -> int:
    """Return how often a tensor was changed in place; 0 for anything else.

    Example:
        >>> x = torch.zeros(2)
        >>> _ = x.add_(1)
        >>> version_of(x), version_of("text")
        (1, 0)
    """
    if not isinstance(value, torch.Tensor):
        return 0
    try:
        return value._version
    except RuntimeError:  # tensors made in inference mode count no versions
        return 0


def _contents(name: str, value: Any, within: tuple[int, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield a value and what it contains, with the name of each."""
    yield name, value
    if id(value) in within:
        return  # it contains itself
    within = (*within, id(value))
    parts: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        parts = [(f"[{key!r}]", item) for key, item in value.items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"[{index}]", item) for index, item in enumerate(value)]
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [(f".{key}", item) for key, item in vars(value).items()]
    for step, item in parts:
        yield from _contents(name + step, item, within)


def _attributes(module: torch.nn.Module, name: str) -> Iterator[tuple[str, Any]]:
    """Yield the plain Python attributes of a module and of those within it."""
    for path, submodule in module.named_modules():
        prefix = f"{name}.{path}" if path else name
        own_layer = type(submodule).__module__.startswith("torch.")  # torch's LSTM keeps lists
        for key, value in vars(submodule).items():
            if key == "training" or not (
                key in _TORCH_ATTRIBUTES or (own_layer and key.startswith("_"))
            ):
                yield f"{prefix}.{key}", value


def _reachable(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield the closure of a function, and the globals that its code names."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        try:
            yield f"closure variable {name!r}", cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield f"global {name!r}", function.__globals__[name]


def _names(code: types.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _location(function: Any) -> SourceLocation | None:
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType):
        return None
    return SourceLocation(code.co_filename, code.co_firstlineno)
