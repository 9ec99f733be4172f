"""Pytrees: nested containers of arguments and results as plain JSON, without torch.

A tree is one of

* an `int`: the leaf with that index;
* `None`: the value `None`;
* `["list", [tree, ...]]`, `["tuple", [tree, ...]]`;
* `["dict", [[key, tree], ...]]`, with keys that JSON has (text, numbers, booleans);
* `["namedtuple" | "dataclass" | "mapping", "module:Qualified.Name", [[field, tree], ...]]`.

Classes are never imported for a file: `unflatten` uses the class if the process has already
imported it, else a stand-in of the same fields.
"""

from __future__ import annotations

import dataclasses
import functools
import sys
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import SignatureError

Tree: TypeAlias = Any  # int | None | list[Any], as described above

_CLASSES = ("namedtuple", "dataclass", "mapping")


def describe(value: Any, is_leaf: Callable[[Any], bool]) -> tuple[Tree, list[Any]]:
    """Return the tree of `value` and its leaves, in order.

    Args:
        value: Nested lists, tuples, dicts, named tuples and dataclasses.
        is_leaf: Whether an object is a leaf; any other that is not a container is one too.

    Raises:
        SignatureError: A dict key that JSON cannot hold.

    Example:
        >>> describe({"a": [10, (20,)], "b": None}, lambda x: False)
        (['dict', [['a', ['list', [0, ['tuple', [1]]]]], ['b', None]]], [10, 20])
    """
    leaves: list[Any] = []

    def walk(item: Any) -> Tree:
        if item is None:
            return None
        if not is_leaf(item):
            if isinstance(item, tuple) and hasattr(item, "_fields"):
                return ["namedtuple", _class_name(item), _fields(item, item._fields)]
            if dataclasses.is_dataclass(item) and not isinstance(item, type):
                names = [field.name for field in dataclasses.fields(item)]
                return ["dataclass", _class_name(item), _fields(item, names)]
            if isinstance(item, (list, tuple)):
                kind = "list" if isinstance(item, list) else "tuple"
                return [kind, [walk(child) for child in item]]
            if isinstance(item, Mapping):
                pairs = [[_key(key), walk(child)] for key, child in item.items()]
                return (
                    ["dict", pairs] if type(item) is dict else ["mapping", _class_name(item), pairs]
                )
        leaves.append(item)
        return len(leaves) - 1

    def _fields(item: Any, names: Sequence[str]) -> list[list[Any]]:
        return [[name, walk(getattr(item, name))] for name in names]

    return walk(value), leaves


def _key(key: Any) -> Any:
    if isinstance(key, (str, int, float, bool)):
        return key
    raise SignatureError(
        f"dict key {key!r} of type {type(key).__name__} cannot be stored in a signature; "
        "use text or numbers as keys"
    )


def _class_name(item: Any) -> str:
    return f"{type(item).__module__}:{type(item).__qualname__}"


def check(tree: Any, count: int) -> Tree:
    """Return `tree` if it is one whose leaves are indices below `count`.

    Raises:
        ValueError: It is not.

    Example:
        >>> check(["list", [0, None]], 1)
        ['list', [0, None]]
    """
    if tree is None or (type(tree) is int and 0 <= tree < count):
        return tree
    if not isinstance(tree, list) or not tree or not isinstance(tree[-1], list):
        raise ValueError(f"{tree!r} is not a structure of {count} leaves")
    kind, *name, items = tree
    if kind in ("list", "tuple") and not name:
        subtrees = items
    elif (kind == "dict" and not name) or (kind in _CLASSES and [type(n) for n in name] == [str]):
        if not all(isinstance(item, list) and len(item) == 2 for item in items):
            raise ValueError(f"{tree!r} is not a structure of names and values")
        if kind in ("namedtuple", "dataclass") and not all(str(k).isidentifier() for k, _ in items):
            raise ValueError(f"{tree!r} has fields without a name")
        if len({_key(key) for key, _ in items}) != len(items):
            raise ValueError(f"{tree!r} names a value twice")
        subtrees = [child for _, child in items]
    else:
        raise ValueError(f"{tree!r} is a structure of an unknown kind")
    for child in subtrees:
        check(child, count)
    return tree


def children(tree: Tree) -> list[tuple[str, Tree]]:
    """Return the path step and subtree of each child (none for a leaf or `None`).

    Example:
        >>> children(["dict", [["a", 0]]]), children(["list", [0]]), children(3)
        ([("['a']", 0)], [('[0]', 0)], [])
    """
    if tree is None or isinstance(tree, int):
        return []
    kind, *_, items = tree
    if kind in ("list", "tuple"):
        return [(f"[{index}]", child) for index, child in enumerate(items)]
    if kind in ("dict", "mapping"):
        return [(f"[{key!r}]", child) for key, child in items]
    return [(f".{name}", child) for name, child in items]


def leaf_paths(tree: Tree, root: str) -> dict[int, str]:
    """Return the path of each leaf, such as `cache['keys'][0]`.

    Example:
        >>> leaf_paths(["list", [4, ["dict", [["k", 5]]]]], "x")
        {4: 'x[0]', 5: "x[1]['k']"}
    """
    if isinstance(tree, int):
        return {tree: root}
    paths: dict[int, str] = {}
    for step, child in children(tree):
        paths.update(leaf_paths(child, root + step))
    return paths


def flatten(tree: Tree, value: Any, leaves: list[Any], root: str) -> None:
    """Write the leaves of `value` to their positions in `leaves`.

    Lists and tuples are interchangeable, as are mappings.

    Args:
        tree: The structure.
        value: A value of that structure.
        leaves: The list to write to; the leaves of `tree` are its indices.
        root: The path of `value`, which messages begin with.

    Raises:
        SignatureError: `value` is not of the tree's structure; names the path and both structures.

    Example:
        >>> leaves = [None, None]
        >>> flatten(["list", [1, 0]], ("a", "b"), leaves, "x")
        >>> leaves
        ['b', 'a']
    """
    if isinstance(tree, int):
        leaves[tree] = value
        return
    if tree is None:
        if value is not None:
            raise SignatureError(f"argument {root} expects None, got {_short(value)}")
        return
    kind, *_, items = tree
    parts = _parts(kind, items, value)
    if parts is None:
        raise SignatureError(
            f"argument {root} expects {render(tree)}, got {_short(value)}; "
            "pass the same structure as at export"
        )
    for (step, child), part in zip(children(tree), parts, strict=True):
        flatten(child, part, leaves, root + step)


def _parts(kind: str, items: list[Any], value: Any) -> list[Any] | None:
    """Return the children of `value` in the order of `items`; None where they do not fit."""
    if kind in ("list", "tuple"):
        if isinstance(value, (list, tuple)) and len(value) == len(items):
            return list(value)
        return None
    names = [name for name, _ in items]
    if isinstance(value, Mapping):
        if set(value) <= set(names) and all(
            name in value for name, tree in items if tree is not None
        ):
            return [value.get(name) for name in names]
        return None
    if kind == "namedtuple" and isinstance(value, (list, tuple)) and len(value) == len(names):
        return list(value)
    if kind in _CLASSES and all(hasattr(value, str(n)) for n in names):
        return [getattr(value, str(name)) for name in names]
    return None


def unflatten(tree: Tree, leaves: Sequence[Any]) -> Any:
    """Build the value of a tree from its leaves.

    Example:
        >>> unflatten(["dict", [["a", 1], ["b", None]]], [10, 20])
        {'a': 20, 'b': None}
    """
    if tree is None:
        return None
    if isinstance(tree, int):
        return leaves[tree]
    kind, *name, items = tree
    if kind in ("list", "tuple"):
        values = [unflatten(child, leaves) for child in items]
        return values if kind == "list" else tuple(values)
    pairs = [(key, unflatten(child, leaves)) for key, child in items]
    if kind == "dict":
        return dict(pairs)
    cls = _imported_class(name[0])
    if kind == "mapping":
        return _build(cls, pairs) if cls else dict(pairs)
    if cls is None:
        cls = _stand_in(kind, name[0].rpartition(":")[2], tuple(key for key, _ in pairs))
    return _build(cls, pairs)


def _build(cls: type, pairs: list[tuple[Any, Any]]) -> Any:
    try:
        if issubclass(cls, Mapping) and not dataclasses.is_dataclass(cls):
            return cls(pairs)  # type: ignore[call-arg]
        return cls(**dict(pairs))
    except TypeError as error:
        raise SignatureError(
            f"cannot build a {cls.__qualname__} of the results: {error}"
        ) from error


def _imported_class(name: str) -> type | None:
    module, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, type) else None


@functools.lru_cache(maxsize=256)
def _stand_in(kind: str, qualified: str, fields: tuple[str, ...]) -> type:
    name = qualified.rpartition(".")[2]
    if kind == "namedtuple":
        return namedtuple(name, fields)
    return dataclasses.make_dataclass(name, fields)


def render(tree: Tree) -> str:
    """Return a tree as text for messages.

    Example:
        >>> render(["dict", [["a", 0], ["b", ["tuple", [1]]]]])
        "{'a': *, 'b': (*,)}"
    """
    if tree is None:
        return "None"
    if isinstance(tree, int):
        return "*"
    kind, *name, items = tree
    if kind == "list":
        return f"[{', '.join(render(child) for child in items)}]"
    if kind == "tuple":
        inner = ", ".join(render(child) for child in items)
        return f"({inner},)" if len(items) == 1 else f"({inner})"
    if kind == "dict":
        return "{" + ", ".join(f"{key!r}: {render(child)}" for key, child in items) + "}"
    inner = ", ".join(f"{key}={render(child)}" for key, child in items)
    return f"{name[0].rpartition(':')[2]}({inner})"


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"{type(value).__name__} with keys {list(value)!r}"[:200]
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__} of {len(value)} items"
    shape = getattr(value, "shape", None)
    return f"{type(value).__name__}" + (f" of shape {tuple(shape)}" if shape is not None else "")
