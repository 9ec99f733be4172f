"""torch's own database of operators, as functions of tensors that can be exported."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any
from unittest import mock

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

from .isolation import Outcome

SAMPLES = 3
"""How many samples of an operator are measured, from the first."""

RANDOM = (
    "bernoulli", "cauchy", "dropout", "empty", "exponential", "geometric", "log_normal",
    "multinomial", "normal", "rand", "resize", "uniform",
)  # fmt: skip
"""Words in the names of operators whose numbers are random or uninitialised: types and shapes are
compared, not values."""


def _of_svd(result: Any, *_: Any, **__: Any) -> tuple[Any, ...]:
    left, values, right = result
    count = values.shape[-1]
    if not left.numel() or not right.numel():
        return (values,)
    made = left[..., :count] * values[..., None, :] @ right[..., :count].mH
    return values, left.mH @ left, right.mH @ right, made


def _of_linalg_svd(result: Any, *_: Any, **__: Any) -> tuple[Any, ...]:
    return _of_svd((result[0], result[1], result[2].mH))


def _of_eigenvectors(result: Any, *_: Any, **__: Any) -> tuple[Any, ...]:
    values, vectors = result
    return values, vectors.mH @ vectors, vectors * values[..., None, :] @ vectors.mH


def _of_topk(result: Any, given: Any, k: int, dim: int = -1, *_: Any, **__: Any) -> tuple[Any, ...]:
    values, indices = result
    return values, torch.gather(given, dim, indices) if given.dim() else indices


def _of_kthvalue(
    result: Any, given: Any, k: int, dim: int = -1, keepdim: bool = False, *_: Any
) -> tuple[Any, ...]:
    values, indices = result
    if not given.dim():
        return values, indices
    there = torch.gather(given, dim, indices if keepdim else indices.unsqueeze(dim))
    return values, there


def _of_argsort(
    result: Any, given: Any, dim: int = -1, *_: Any, stable: bool = False, **__: Any
) -> tuple[Any, ...]:
    return (result if stable or not given.dim() else torch.gather(given, dim, result),)


def _of_sort(result: Any, given: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    values, indices = result
    return values, *_of_argsort(indices, given, *args, **kwargs)


INVARIANTS: dict[str, Callable[..., Any]] = {
    "argsort": _of_argsort,
    "kthvalue": _of_kthvalue,
    "linalg.eigh": _of_eigenvectors,
    "linalg.svd": _of_linalg_svd,
    "sort": _of_sort,
    "svd": _of_svd,
    "topk": _of_topk,
}
"""Operators whose results are not determined, and what is, from the results and the arguments: of
vectors that have signs and bases of their own, that they are orthonormal, and what matrix they
make; of indices among equal elements, what is at them."""


@dataclass(frozen=True)
class Sample:
    """One call of an operator: a function of its tensors, and the tensors."""

    function: Callable[..., Any]
    tensors: tuple[torch.Tensor, ...]


def operator_infos() -> list[Any]:
    """Return the entries of torch's database, one for each name."""
    from torch.testing._internal.common_methods_invocations import op_db

    return list({full_name(info): info for info in reversed(op_db)}.values())[::-1]


def full_name(info: Any) -> str:
    """Return an entry's name with its variant."""
    variant = info.variant_test_name
    return f"{info.name}.{variant}" if variant else str(info.name)


def is_random(name: str) -> bool:
    """Whether an operator's numbers are random or uninitialised."""
    return any(word in name for word in RANDOM) and "window" not in name


def is_deterministic(sample: Sample) -> bool:
    """Whether eager torch gives the same numbers from two states of its random generator."""
    try:
        pairs = zip(_seeded(sample, 1), _seeded(sample, 2), strict=True)
        return all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs)
    except Exception:  # no numbers that can be compared, which the case itself will tell
        return True


def _seeded(sample: Sample, seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    with mock.patch("torch.manual_seed"):  # the database's own calls set it
        return tree_flatten(sample.function(*(tensor.clone() for tensor in sample.tensors)))[0]


def samples_of(info: Any, dtype: torch.dtype) -> list[Sample]:
    """Return the first samples of an operator that have tensors and give tensors."""
    torch.manual_seed(0)
    # The database notes which test asks, by a look through the stack, slower than many a compile.
    with mock.patch("torch.testing._internal.opinfo.core.extract_test_fn", return_value=None):
        return list(islice(_samples(info, dtype), SAMPLES))


def _samples(info: Any, dtype: torch.dtype) -> Iterator[Sample]:
    for sample in info.sample_inputs("cpu", dtype, requires_grad=False):
        leaves, tree = tree_flatten((sample.input, sample.args, sample.kwargs))
        positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        yield Sample(
            _Call(info, leaves, tree, positions),
            tuple(leaves[position].detach() for position in positions),
        )


class _Call:
    """An operator with its arguments that are not tensors filled in."""

    def __init__(self, info: Any, leaves: list[Any], tree: Any, positions: list[int]) -> None:
        self.operator = info.op
        self.invariants = INVARIANTS.get(full_name(info))
        self.leaves = [None if i in positions else leaf for i, leaf in enumerate(leaves)]
        self.tree = tree
        self.positions = positions

    def __call__(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = list(self.leaves)
        for position, tensor in zip(self.positions, tensors, strict=True):
            leaves[position] = tensor
        given, args, kwargs = tree_unflatten(leaves, self.tree)
        result = self.operator(given, *args, **kwargs)
        if self.invariants is not None:
            result = self.invariants(result, given, *args, **kwargs)
        return tuple(leaf for leaf in tree_flatten(result)[0] if isinstance(leaf, torch.Tensor))


def together(samples: list[Sample]) -> Sample:
    """Return one function that makes all the calls."""
    counts = [len(sample.tensors) for sample in samples]

    def function(*tensors: torch.Tensor) -> tuple[Any, ...]:
        results, start = [], 0
        for sample, count in zip(samples, counts, strict=True):
            results.append(sample.function(*tensors[start : start + count]))
            start += count
        return tuple(results)

    return Sample(function, tuple(tensor for sample in samples for tensor in sample.tensors))


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome that decides: wrong before refused, anything before right."""
    order = ("wrong", "crash", "timeout", "failed", "refused", "unmeasured", "ok")
    return min(outcomes, key=lambda outcome: order.index(outcome.status))
