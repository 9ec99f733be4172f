"""Sizes of operands that torch does not compare: what fits, what a call or an export refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from pelton import aot, runtime
from pelton.runtime.call.sizes import evaluate

AUTO = torch.export.Dim.AUTO
aten = torch.ops.aten


def exported(function: Callable[..., Any], *args: torch.Tensor) -> aot.ExportOutput:
    shapes = tuple({axis: AUTO for axis in range(x.dim())} or None for x in args)
    return aot.export(lambda *a: function(*a), args=args, dynamic_shapes={"a": shapes})


PLACES, ROWS = torch.tensor([0, 2, 1]), torch.rand(3, 5)


@pytest.mark.parametrize(
    "function, args",
    [
        (lambda x, i, v: x.index_put((i,), v), (torch.rand(8), PLACES, torch.rand(3))),
        (lambda x, i, v: x.index_put((i,), v), (torch.rand(8, 5), PLACES, torch.rand(5))),
        (lambda x, i, v: x.index_put((i, i), v, True), (torch.rand(8, 5), PLACES, torch.rand(3))),
        (lambda x, i, v: x.clone().index_put_((i,), v), (torch.rand(8, 5), PLACES, ROWS)),
        (lambda x, i, v: x.index_add(0, i, v), (torch.rand(8, 5), PLACES, ROWS)),
        (lambda x, i, v: x.index_copy(0, i, v), (torch.rand(8, 5), PLACES, ROWS)),
        (lambda x, i, v: x.index_reduce(0, i, v, "prod"), (torch.rand(8, 5), PLACES, ROWS)),
        (lambda x, i, v: x.scatter_add(0, i, v), (torch.rand(8), PLACES, torch.rand(3))),
        (lambda x, i, v: x.put(i, v), (torch.rand(8), PLACES, torch.rand(3))),
        (lambda x, i: x.gather(0, i), (torch.rand(8), PLACES)),
        (lambda x, i: x.index_select(1, i), (ROWS, PLACES)),
        (lambda x, i: x[:, i], (ROWS, PLACES)),
        (lambda x, i: torch.embedding(x, i), (ROWS, PLACES)),
        (lambda x, i: x.take(i), (ROWS, PLACES)),
        (lambda x, t: torch.nn.functional.cross_entropy(x, t), (ROWS, PLACES)),
        (lambda x: x[:, -2] + x.select(1, 2), (ROWS,)),
        (lambda x, v: torch.slice_scatter(x, v, 0, 1), (torch.rand(4, 5), ROWS)),
        (lambda x, v: torch.select_scatter(x, v, 1, -1), (ROWS, torch.rand(3))),
        (lambda x, v: torch.diagonal_scatter(x, v, 1), (ROWS, torch.rand(3))),
    ],
)  # fmt: skip
def test_a_call_is_refused_where_eager_refuses_it(
    function: Callable[..., Any], args: tuple[torch.Tensor, ...]
) -> None:
    signature = exported(function, *args).signatures["main"]
    for position, given in enumerate(args):
        for axis in range(given.dim()):
            for size in (0, given.shape[axis] - 1, given.shape[axis] + 1):
                called = [x if x.is_floating_point() else torch.zeros_like(x) for x in args]
                shape = [*given.shape[:axis], size, *given.shape[axis + 1 :]]
                called[position] = torch.zeros(shape, dtype=given.dtype)
                try:
                    function(*called)
                except (RuntimeError, IndexError, ValueError):
                    assert not fits(signature, called), (position, axis, size)


def fits(signature: runtime.Signature, args: list[torch.Tensor]) -> bool:
    """Return whether a call with these arguments is within the signature."""
    values: dict[str, int] = {}
    for spec, given in zip(signature.inputs, args, strict=True):
        for name, size in zip(spec.shape, given.shape, strict=True):
            if isinstance(name, str) and values.setdefault(name, size) != size:
                return False
    for spec, given in zip(signature.inputs, args, strict=True):
        if [evaluate(size, values) for size in spec.shape] != list(given.shape):
            return False
    within = all(dim.contains(values[dim.name]) for dim in signature.dims)
    return within and all(item.holds(values) for item in signature.constraints)


def test_a_varying_size_that_eager_would_broadcast_is_refused() -> None:
    with pytest.raises(aot.DynamicShapeError, match=r"index_put: .* not broadcast.*\(at .*py:\d+"):
        exported(lambda x, i, v: x.index_put((i,), v), torch.rand(8), PLACES, torch.rand(1))


def test_a_fixed_size_of_one_is_broadcast() -> None:
    def put(x: torch.Tensor, i: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.index_put(x, (i,), v)

    args = torch.zeros(8), PLACES, torch.ones(1)
    out = aot.export(put, args=args, dynamic_shapes=({}, {0: AUTO}, None))
    exe = runtime.load(bytes(out.compile().map_memory()))
    for i in (PLACES, PLACES[:1], PLACES[:0]):
        assert torch.equal(exe(args[0], i, args[2]), put(args[0], i, args[2]))


def test_sizes_of_examples_must_fit() -> None:
    with pytest.raises(aot.DynamicShapeError, match=r"put: .* of size 2 .* 3 in the example"):
        exported(lambda x, i, v: x.put(i, v), torch.rand(8), PLACES, torch.rand(2))
