"""Operators of generated programs: pure ones, views, writes in place, control flow.

Each takes tensors of any shape and raises where a shape does not fit, so that a program is chosen
by trying. Attributes are plain numbers, so that a program can be written down.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

Attributes = tuple[int, ...]


@dataclass(frozen=True)
class Operator:
    """An operator of a generated program.

    Attributes:
        arity: How many tensors it takes.
        apply: Computes the result of tensors and attributes.
        ranges: The range that each attribute is drawn from, both ends included.
        exact: Whether the result of exact numbers is exact in float32, as a sum of quarters is.
        stable: Whether small changes of its operands change its result little.
        floats: Whether it takes floating-point tensors only; None: any type.
    """

    arity: int
    apply: Callable[..., Tensor]
    ranges: tuple[tuple[int, int], ...] = ()
    exact: bool = True
    stable: bool = True
    floats: bool | None = None

    def draw(self, source: random.Random) -> Attributes:
        """Draw attributes."""
        return tuple(source.randint(low, high) for low, high in self.ranges)


_DIM = (-2, 1)
_PLACE = (-4, 4)


def _small(x: Tensor) -> Tensor:
    """Keep numbers small, so that sums and products of a few stay exact."""
    return x.clamp(-64, 64) if x.dtype is not torch.bool else x


def _index(i: Tensor, size: int) -> Tensor:
    return i.to(torch.int64).reshape(-1) % size


VIEWS: Mapping[str, Operator] = {
    "transpose": Operator(1, lambda x, a, b: x.transpose(a, b), (_DIM, _DIM)),
    "select": Operator(1, lambda x, d, i: x.select(d, i), (_DIM, (-2, 2))),
    "slice": Operator(
        1, lambda x, d, a, b: torch.ops.aten.slice.Tensor(x, d, a, b), (_DIM, _PLACE, _PLACE)
    ),
    "step": Operator(
        1, lambda x, d, a, s: torch.ops.aten.slice.Tensor(x, d, a, None, s),
        (_DIM, (0, 2), (1, 3)),
    ),
    "unsqueeze": Operator(1, lambda x, d: x.unsqueeze(d), ((-2, 1),)),
    "squeeze": Operator(1, lambda x: x.squeeze()),
    "flatten": Operator(1, lambda x: x.reshape(-1)),
    "diagonal": Operator(1, lambda x, o: x.diagonal(o), ((-1, 1),)),
    "expand": Operator(1, lambda x, k: x.expand(k, *x.shape), ((1, 3),)),
    "movedim": Operator(1, lambda x, a, b: x.movedim(a, b), (_DIM, _DIM)),
    "narrow": Operator(1, lambda x, d, a, n: x.narrow(d, a, n), (_DIM, (-2, 1), (0, 2))),
    "unflatten": Operator(1, lambda x, d, a: x.unflatten(d, (a, -1)), (_DIM, (1, 2))),
    "unflatten last": Operator(1, lambda x, d, a: x.unflatten(d, (-1, a)), (_DIM, (1, 2))),
    "split": Operator(1, lambda x, n, i, d: x.split(n, d)[i], ((1, 2), (-1, 1), _DIM)),
    "chunk": Operator(1, lambda x, n, i, d: x.chunk(n, d)[i], ((1, 3), (-1, 0), _DIM)),
}  # fmt: skip

PURE: Mapping[str, Operator] = {
    "add": Operator(2, lambda x, y: _small(x + y)),
    "sub": Operator(2, lambda x, y: _small(x - y)),
    "mul": Operator(2, lambda x, y: _small(x * y)),
    "maximum": Operator(2, torch.maximum),
    "minimum": Operator(2, torch.minimum),
    "neg": Operator(1, lambda x: -x),
    "abs": Operator(1, torch.abs),
    "relu": Operator(1, torch.relu),
    "plus": Operator(1, lambda x, a: _small(x + a), ((-3, 3),)),
    "times": Operator(1, lambda x, a: _small(x * a), ((-3, 3),)),
    "clone": Operator(1, torch.clone),
    "sign": Operator(1, torch.sign, stable=False),
    "floor": Operator(1, torch.floor, stable=False, floats=True),
    "greater": Operator(2, lambda x, y: x > y, stable=False),
    "equal": Operator(2, lambda x, y: x == y, stable=False),
    "where": Operator(3, lambda c, x, y: torch.where(c > 0, x, y), stable=False),
    "masked_fill": Operator(1, lambda x, a: x.masked_fill(x > a, a), ((-2, 2),)),
    "float": Operator(1, lambda x: x.to(torch.float32)),
    "int64": Operator(1, lambda x: x.to(torch.int64), stable=False),
    "int32": Operator(1, lambda x: x.to(torch.int32), stable=False),
    "bool": Operator(1, lambda x: x.to(torch.bool), stable=False),
    "sigmoid": Operator(1, torch.sigmoid, exact=False, floats=True),
    "sine": Operator(1, torch.sin, exact=False, floats=True),
    "softmax": Operator(1, lambda x, d: x.softmax(d), (_DIM,), exact=False, floats=True),
    "mean": Operator(1, lambda x, d: x.mean(d), (_DIM,), exact=False, floats=True),
    "norm": Operator(
        1, lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:]), exact=False, floats=True
    ),
    "sum": Operator(1, lambda x, d: _small(x.sum(d)), (_DIM,)),
    "sum keeping": Operator(1, lambda x, d: _small(x.sum(d, keepdim=True)), (_DIM,)),
    "sum of all": Operator(1, lambda x: _small(x.sum())),
    "amax": Operator(1, lambda x, d: x.amax(d), (_DIM,)),
    "amin keeping": Operator(1, lambda x, d: x.amin(d, keepdim=True), (_DIM,)),
    "argmax": Operator(1, lambda x, d: x.argmax(d), (_DIM,), stable=False),
    "any": Operator(1, lambda x, d: (x > 0).any(d), (_DIM,), stable=False),
    "cumsum": Operator(1, lambda x, d: _small(x.cumsum(d)), (_DIM,)),
    "sort": Operator(1, lambda x, d: torch.sort(x, dim=d, stable=True)[0], (_DIM,)),
    "argsort": Operator(
        1, lambda x, d: torch.argsort(x, dim=d, stable=True), (_DIM,), stable=False
    ),
    "flip": Operator(1, lambda x, d: x.flip(d), (_DIM,)),
    "roll": Operator(1, lambda x, s, d: x.roll(s, d), ((-7, 7), _DIM)),
    "unfold": Operator(  # copied: torch.export loses writes through it
        1, lambda x, d, s, t: x.unfold(d, s, t).clone(), (_DIM, (1, 3), (1, 2))
    ),
    "tril": Operator(1, lambda x, o: x.tril(o), ((-1, 1),)),
    "repeat": Operator(1, lambda x, a: x.repeat(a, *[1] * (x.dim() - 1)), ((1, 2),)),
    "cat": Operator(2, lambda x, y, d: torch.cat([x, y], d), (_DIM,)),
    "stack": Operator(2, lambda x, y, d: torch.stack([x, y], d), (_DIM,)),
    "pad": Operator(
        1, lambda x, a, b: torch.nn.functional.pad(x, (a, b), value=1.5), ((-1, 2), (0, 2))
    ),
    "avg_pool": Operator(
        1, lambda x, p: torch.nn.functional.avg_pool2d(x[None], 2 + p, 1, p), ((0, 1),),
        exact=False, floats=True,
    ),
    "max_pool": Operator(
        1, lambda x, p: torch.nn.functional.max_pool2d(x[None], 2 + p, 1, p), ((0, 1),),
        floats=True,
    ),
    "depthwise": Operator(
        1, lambda x: _small(torch.conv2d(x[None], x.new_ones(x.shape[0], 1, 2, 2), groups=2)),
        floats=True,
    ),
    "matmul": Operator(2, lambda x, y: _small(x @ y), floats=True),
    "index": Operator(2, lambda x, i: x[_index(i, x.shape[0])]),
    "index_select": Operator(
        2, lambda x, i, d: x.index_select(d, _index(i, x.shape[d])), (_DIM,)
    ),
    "gather": Operator(
        2, lambda x, i, d: x.gather(d, i.to(torch.int64) % x.shape[d]), (_DIM,)
    ),
    "index_add": Operator(
        2, lambda x, i, d: _small(x.index_add(d, _index(i, x.shape[d]), x[: i.numel()])), (_DIM,)
    ),
    "index_put": Operator(
        3, lambda x, i, y: x.index_put((_index(i, x.shape[0]),), y, accumulate=True)
    ),
    "scatter_add": Operator(
        2, lambda x, i, d: _small(x.scatter_add(d, i.to(torch.int64) % x.shape[d], x)), (_DIM,)
    ),
    "double": Operator(1, lambda x: x.to(torch.float64)),
    "int8": Operator(1, lambda x: _small(x).to(torch.int8), stable=False),
    "uint8": Operator(1, lambda x: x.clamp(0, 64).to(torch.uint8), stable=False),
    "half of": Operator(1, lambda x: x / 2),
    "quotient": Operator(1, lambda x, a: x // a, ((1, 3),), stable=False),
    "remainder": Operator(1, lambda x, a: x % a, ((1, 3),), stable=False),
    "logical_and": Operator(2, torch.logical_and, stable=False),
    "xor": Operator(2, lambda x, y: (x > 0) ^ (y > 0), stable=False),
    "rms_norm": Operator(
        1, lambda x: torch.nn.functional.rms_norm(x, x.shape[-1:]), exact=False, floats=True
    ),
    "var": Operator(1, lambda x, d, c: _small(x.var(d, correction=c)), (_DIM, (0, 1)),
                    exact=False, floats=True),
    "logsumexp": Operator(1, lambda x, d: x.logsumexp(d), (_DIM,), exact=False, floats=True),
    "diff": Operator(1, lambda x, d: x.diff(dim=d), (_DIM,)),
    "topk": Operator(1, lambda x, d: x.topk(1, d)[0], (_DIM,)),
    "cummax": Operator(1, lambda x, d: x.cummax(d)[0], (_DIM,)),
    "count": Operator(1, lambda x, d: x.count_nonzero(d), (_DIM,), stable=False),
    "all": Operator(1, lambda x, d: (x > -1).all(d), (_DIM,), stable=False),
    "outer": Operator(2, lambda x, y: _small(torch.outer(x, y))),
    "repeat_interleave": Operator(1, lambda x, n, d: x.repeat_interleave(n, d), ((1, 2), _DIM)),
    "index_copy": Operator(  # in another order, without repeats
        1, lambda x, d: x.index_copy(d, torch.arange(x.shape[d]).flip(0), x * 2), (_DIM,)
    ),
    "scatter": Operator(
        1, lambda x, d: x.scatter(d, torch.argsort(x, dim=d, stable=True), x), (_DIM,),
        stable=False,
    ),
    "take_along": Operator(
        1, lambda x, d: x.take_along_dim(x.argmax(d, keepdim=True), d), (_DIM,), stable=False
    ),
    "positive": Operator(1, lambda x: _small(x[x > 0].sum()), stable=False),
    "chosen rows": Operator(
        1, lambda x: _small(x[x.reshape(x.shape[0], -1).sum(1) > 0].sum(0)), stable=False
    ),
    "zeros": Operator(1, lambda x: torch.zeros(x.shape)),
    "zeros_like": Operator(1, torch.zeros_like),
    "full": Operator(1, lambda x, a: torch.full(x.shape, float(a)), ((0, 2),)),
    "arange": Operator(1, lambda x, d: torch.arange(x.shape[d]), (_DIM,)),
    "eye": Operator(1, lambda x, d: torch.eye(x.shape[d]), (_DIM,)),
}  # fmt: skip

WRITES: Mapping[str, Operator] = {
    "add_": Operator(1, lambda v, a: v.add_(a), ((-3, 3),)),
    "mul_": Operator(1, lambda v, a: v.mul_(a), ((-2, 2),)),
    "fill_": Operator(1, lambda v, a: v.fill_(a), ((-3, 3),)),
    "zero_": Operator(1, lambda v: v.zero_()),
    "masked_fill_": Operator(1, lambda v, a: v.masked_fill_(v > a, a), ((-2, 2),)),
    "flip_": Operator(1, lambda v, d: v.copy_(v.flip(d)), (_DIM,)),
    "shift_": Operator(1, lambda v: v[1:].copy_(v[:-1].clone())),
    "copy_": Operator(2, lambda v, y: v.copy_(y)),
    "add_ of": Operator(2, lambda v, y: v.add_(y)),
    "index_fill_": Operator(
        2, lambda v, i, a: v.index_fill_(0, _index(i, v.shape[0]), float(a)), ((-2, 2),)
    ),
    "neg_": Operator(1, lambda v: v.neg_()),
    "clamp_": Operator(1, lambda v, a: v.clamp_(-a, a), ((0, 4),)),
    "double_": Operator(1, lambda v: v.add_(v)),
    "cumsum_": Operator(1, lambda v, d: v.copy_(_small(v.cumsum(d))), (_DIM,)),
    "sort_": Operator(1, lambda v, d: v.copy_(v.sort(d, stable=True)[0]), (_DIM,)),
    "transpose_": Operator(1, lambda v: v.copy_(v.transpose(0, -1).clone())),
    "where_": Operator(2, lambda v, y: v.copy_(torch.where(v > 0, y, v)), stable=False),
    "swap_": Operator(1, lambda v: v.__setitem__([0, -1], v[[-1, 0]]) or v),
    "slice_": Operator(1, lambda v, a: v.__setitem__(slice(1, None), v[:-1] + a) or v, ((-2, 2),)),
    "index_copy_": Operator(
        2, lambda v, y: v.index_copy_(0, torch.arange(v.shape[0]).flip(0), y)
    ),
    "scatter_": Operator(
        2, lambda v, i, a: v.scatter_(0, i.to(torch.int64) % v.shape[0], float(a)), ((-2, 2),)
    ),
    "index_put_": Operator(
        3, lambda v, i, y: v.index_put_((_index(i, v.shape[0]),), y, accumulate=True)
    ),
    "last_": Operator(1, lambda v, a: v[-1:].add_(a), ((1, 9),)),
    "rows_": Operator(1, lambda v, a: v.__setitem__([0, -1], a) or v, ((-3, 3),)),
}  # fmt: skip
"""Operators that write to a view of a tensor that the program has made."""


def _cond(c: Tensor, x: Tensor, a: int) -> Tensor:
    result: Tensor = torch.cond(
        c.sum() > a, lambda x: x.flip(0) + 1, lambda x: torch.cat([x[1:], x[:1]]) * 2, (x,)
    )
    return _small(result)


def _loop(x: Tensor, a: int) -> Tensor:
    def body(i: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        y = y.clone()
        y[1:] = y[:-1].clone() + 1
        return i + 1, y

    result: Tensor = torch._higher_order_ops.while_loop(
        lambda i, y: i < a, body, (torch.tensor(0), x)
    )[1]
    return _small(result)


FLOW: Mapping[str, Operator] = {
    "cond": Operator(2, _cond, ((-2, 2),), stable=False),
    "while_loop": Operator(1, _loop, ((0, 4),)),
}  # fmt: skip

OPERATORS: Mapping[str, Operator] = {**VIEWS, **PURE, **WRITES, **FLOW}
