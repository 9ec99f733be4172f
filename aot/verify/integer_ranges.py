"""Ranges of integer inputs: an index lies within the table that it indexes.

Three sources, in this order: what the user says; the tables that the reference indexes with an
input as it is; and else the widest range of a few with which the reference runs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Protocol

import torch

from pelton.runtime.call.dtypes import DTYPES, DType
from pelton.runtime.call.signature import ScalarSpec, Signature, TensorSpec

from ..compat.dispatch import TorchDispatchMode
from ..spec.errors import ExportError
from .options import Numerics
from .values import Bounds, InputMaker, InputPattern

_LOG = logging.getLogger("pelton")

CANDIDATES: tuple[Bounds, ...] = ((-100, 100), (0, 100), (0, 9), (1, 9), (0, 1), (0, 0), (1, 1))
"""The ranges that are tried, the widest first, for integers of which nothing else is known."""


class Runs(Protocol):
    """What runs a function as PyTorch does."""

    def __call__(self, leaves: list[Any]) -> list[Any]:
        """Return the results for input leaves."""


def integer_ranges(
    signature: Signature, run: Runs, sizes: Mapping[str, int], options: Numerics
) -> tuple[dict[int, Bounds], list[str]]:
    """Return the range of each integer input by its index, and for the report where from.

    Args:
        signature: The function's signature.
        run: Runs the reference.
        sizes: Sizes to run it at.
        options: May state ranges, by path.

    Raises:
        ExportError: The options name an input that is no integer of the function.
    """
    maker = InputMaker(signature, {})
    open_ = [i for i, (_, leaf) in enumerate(maker.inputs) if _is_integer(leaf)]
    paths = {path: index for index, (path, _) in enumerate(maker.inputs) if index in open_}
    ranges: dict[int, Bounds] = {
        paths[path]: (low, high) for path, (low, high) in options.integers.items() if path in paths
    }
    notes = [f"{path} in {ranges[i]} (as asked)" for path, i in paths.items() if i in ranges]
    if len(ranges) < len(open_):
        watched = _indexed(signature, run, sizes, ranges)
        for path, index in paths.items():
            if index in watched and index not in ranges:
                ranges[index] = (0, watched[index] - 1)
                notes.append(f"{path} in {ranges[index]} (all of the table that it indexes)")
    free = [index for index in open_ if index not in ranges]
    if free:
        chosen = _widest(signature, run, sizes, ranges, free)
        ranges.update({index: _within(chosen, maker.inputs[index][1]) for index in free})
        notes += [f"{p} in {ranges[i]} (PyTorch accepts it)" for p, i in paths.items() if i in free]
    return ranges, [f"{signature.name}(): {note}" for note in notes]


def check_paths(signatures: Mapping[str, Signature], options: Numerics) -> None:
    """Check that each range that the options state is for an integer input of some function.

    Raises:
        ExportError: One is not; lists those that there are.
    """
    known = [
        path
        for signature in signatures.values()
        for path, leaf in signature.named_inputs()
        if _is_integer(leaf)
    ]
    for path in options.integers:
        if path not in known:
            listed = ", ".join(dict.fromkeys(known)) or "none"
            raise ExportError(f"integers: {path!r} is no integer input; there are: {listed}")


def _is_integer(leaf: object) -> bool:
    if isinstance(leaf, ScalarSpec):
        return leaf.kind == "int" and leaf.size is None
    return isinstance(leaf, TensorSpec) and leaf.dtype.name.startswith(("int", "uint"))


def _within(bounds: Bounds, leaf: object) -> Bounds:
    """Return a range cut to what the element type holds."""
    dtype = leaf.dtype if isinstance(leaf, TensorSpec) else DTYPES["int64"]
    low, high = _limits(dtype)
    return max(bounds[0], low), min(bounds[1], high)


def _limits(dtype: DType) -> Bounds:
    info = torch.iinfo(getattr(torch, dtype.name))
    return int(info.min), int(info.max)


def _widest(
    signature: Signature,
    run: Runs,
    sizes: Mapping[str, int],
    known: Mapping[int, Bounds],
    free: list[int],
) -> Bounds:
    for bounds in CANDIDATES:
        maker = InputMaker(signature, {})
        cut = {index: _within(bounds, maker.inputs[index][1]) for index in free}
        maker = InputMaker(signature, {**known, **cut})
        try:
            for seed in range(3):
                run(maker.make(sizes, InputPattern("random", seed)))
            return bounds
        except Exception as error:  # an index out of range, by trial
            _LOG.debug("integers in %s are out of range: %s", bounds, error)
    return 0, 0


def _indexed(
    signature: Signature, run: Runs, sizes: Mapping[str, int], known: Mapping[int, Bounds]
) -> dict[int, int]:
    """Return the number of rows that each input indexes directly, by the input's index."""
    maker = InputMaker(signature, known)
    leaves = maker.make(sizes, InputPattern("zeros"))
    watch = _IndexWatch(leaves)
    try:
        with watch:
            run(leaves)
    except Exception as error:  # the indexing observed before it counts
        _LOG.debug("the watched run stopped early: %s", error)
    return watch.rows


class _IndexWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the size of the dimension that an input is used to index.

    Args:
        leaves: The inputs. Views and copies of them count as them.
    """

    def __init__(self, leaves: list[Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.rows: dict[int, int] = {}
        self._copies: list[torch.Tensor] = []
        self._inputs = {
            leaf.untyped_storage().data_ptr(): index
            for index, leaf in enumerate(leaves)
            if isinstance(leaf, torch.Tensor) and leaf.numel()
        }

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for indices, rows in _index_uses(func, args):
            index = self._input_of(indices)
            if index is not None:
                self.rows[index] = min(rows, self.rows.get(index, rows))
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket.__name__ in ("clone", "_to_copy"):
            index = self._input_of(args[0])
            if index is not None:
                self._copies.append(result)  # so that no other tensor gets its memory
                self._inputs[result.untyped_storage().data_ptr()] = index
        return result

    def _input_of(self, value: Any) -> int | None:
        if not isinstance(value, torch.Tensor) or value.dtype is torch.bool:
            return None
        return self._inputs.get(value.untyped_storage().data_ptr())


_BY_DIMENSION = ("index_select", "gather", "scatter", "scatter_add", "index_add", "index_copy")


def _index_uses(func: Any, args: Any) -> list[tuple[Any, int]]:
    """Return the index tensors of a call, each with the size of what it indexes."""
    name = func.overloadpacket.__name__.rstrip("_")
    if name in ("embedding", "_embedding_bag"):
        return [(args[1], args[0].shape[0])]
    if name in _BY_DIMENSION and len(args) > 2 and args[0].dim():
        return [(args[2], args[0].shape[args[1]])]
    if name == "take":
        return [(args[1], args[0].numel())]
    if name in ("index", "index_put", "_unsafe_index"):
        return [(index, args[0].shape[axis]) for axis, index in enumerate(args[1])]
    return []
