"""Results whose size only a run tells: masks, places, selections, counts."""

import math

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pelton.aot.decompositions.table import corrections
from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

X = torch.tensor([[1.0, -2.0, 3.0, 0.0], [0.0, 5.0, -6.0, 0.0]])
NONE, OTHER = torch.zeros(2, 4), torch.arange(8.0).reshape(2, 4) - 3


def test_places_and_selections_have_the_size_of_the_run(check):
    check(
        {
            "nonzero": lambda x: x.nonzero(),
            "where": lambda x: torch.where(x > 0),
            "mask": lambda x: x[x > 0],
            "rows": lambda x: x[x.sum(1) > 0] + 1,
            "select": lambda x: torch.masked_select(x, x[0] > 0),
            "first": lambda x: torch.nonzero_static(x, size=10),
        },
        [X],
        [NONE],
        [OTHER],
    )


def test_what_follows_a_selection_is_computed(check):
    check({"sums": lambda x: x[x.sum(1) > 0].sum(0)}, [X], [NONE], [OTHER])


def test_masks_choose_where_to_write(check):
    check(
        {
            "number": lambda x: torch.index_put(x, (x > 0,), torch.tensor(7.0)),
            "rows": lambda x: torch.index_put(x, (x.sum(1) > 0,), x[0]),
            "added": lambda x: torch.index_put(x, (x > 0,), torch.tensor(1.0), accumulate=True),
            "each": lambda x: torch.index_put(x, (x > 0,), x[x > 0] * 2),
        },
        [X],
        [OTHER],
    )


def test_unique_elements(check):
    check(
        {
            "all": lambda x: torch.unique(x, return_inverse=True, return_counts=True),
            "runs": lambda x: torch.unique_consecutive(x, return_counts=True),
        },
        [X],
        [NONE],
    )


def test_numbers_of_the_run_are_sizes(check):
    def head(x):
        count = (x > 0).sum().item()
        torch._check(count >= 0)
        torch._check(count <= 4)
        return x[:, :count] * 2, torch.ones(count, 2)

    check({"head": head}, [X], [NONE], [OTHER])


def test_elements_are_repeated_as_often_as_is_said(check):
    counts = torch.tensor([1, 2, 0, 3])
    check({"repeated": lambda n: torch.repeat_interleave(n)}, [counts], [counts.flip(0)])


def test_several_indices_work_for_sizes_that_vary(check):
    def last(x):
        rows = torch.arange(x.shape[0])
        return x[rows, x.argmax(1)], x[rows[:, None], torch.tensor([0, -1])]

    check({"last": last}, [X], [torch.randn(5, 3)], dynamic=({0: DYNAMIC, 1: DYNAMIC},))


DYNAMIC = torch.export.Dim.DYNAMIC


MASKS = [
    torch.zeros(3, dtype=torch.bool), torch.ones(1, dtype=torch.bool), X > 0, X < -9,
    torch.tensor(True), torch.tensor(False), torch.ones(2, 1, 3, dtype=torch.bool),
]  # fmt: skip
EMPTY = [torch.zeros(0), torch.zeros(2, 0, 3)]


@pytest.mark.parametrize("x", [*MASKS, *EMPTY, torch.tensor([0.0, -0.0, math.nan, 2.0])], ids=repr)
def test_places_of_any_tensor(x):
    compare(aten.nonzero.default, x)
    for size in (0, 1, 3, 30):
        compare(aten.nonzero_static.default, x, size=size)
        compare(aten.nonzero_static.default, x, size=size, fill_value=7)


@pytest.mark.parametrize("x", [*MASKS, X, EMPTY[0]], ids=repr)
def test_places_by_dimension(x):
    compare(aten.nonzero_numpy.default, x)


@pytest.mark.parametrize("mask", MASKS[:6], ids=repr)
def test_elements_under_a_mask(mask):
    x = torch.randn(mask.shape)
    compare(aten.masked_select.default, x, mask)
    compare(aten.masked_select.default, torch.randn(3, *mask.shape), mask)
    compare(aten.masked_select.default, EMPTY[1], torch.tensor(True))


def test_masks_among_indices():
    x = torch.randn(2, 4, 3)
    rows, columns = torch.tensor([True, False]), X > 0
    for indices in (
        [rows], [columns], [None, None, torch.tensor([True, False, True])],
        [None, columns[0]], [rows, torch.tensor([0, 2, 3])], [torch.tensor([1, 0]), None,
         torch.tensor([True, False, True])], [~rows & rows],
    ):  # fmt: skip
        compare(aten.index.Tensor, x, indices)
    assert decompose(aten.index.Tensor, x, [torch.tensor([0])]) is NotImplemented


@pytest.mark.parametrize("accumulate", [True, False])
def test_elements_are_put_under_a_mask(accumulate):
    x, rows = torch.randn(2, 4, 3), torch.tensor([False, True])
    mask = X > 0
    for chosen, values in (
        (rows, torch.tensor(2.0)), (rows, torch.randn(1, 4, 3)), (rows, torch.randn(3)),
        (mask, torch.randn(int(mask.sum()), 3)), (mask, torch.randn(3)), (mask, torch.randn(1, 3)),
        (x > 0, torch.randn(int((x > 0).sum()))), (x > 99, torch.tensor(1.0)),
    ):  # fmt: skip
        compare(aten.index_put.default, x, [chosen], values, accumulate)


@pytest.mark.parametrize(
    "indices",
    [
        [[0, -1], [1, 3]], [[[0], [1]], [0, -4]], [[0, 1], None, [2, -1]], [None, [3], [0, 1, -1]],
        [[1], None, [[0, 1], [2, 2]]],
    ],
    ids=str,
)  # fmt: skip
def test_dynamic_tensors_are_indexed_by_several(indices):
    given = [None if index is None else torch.tensor(index) for index in indices]
    table = {aten.index.Tensor: corrections()[aten.index.Tensor]}

    def index(x):
        return aten.index.Tensor(x, given)

    x = torch.randn(2, 4, 3)
    graph = make_fx(
        index, decomposition_table=table, tracing_mode="symbolic", _allow_non_fake_inputs=True
    )(x)
    assert aten.index.Tensor not in {node.target for node in graph.graph.nodes}
    torch.testing.assert_close(graph(x), index(x))


VALUES = [
    torch.tensor([3, 3, 1, 1, 1, 3, 2]), torch.tensor([[1.0, 1.0], [2.0, 1.0]]),
    torch.tensor(4), torch.tensor([7]), torch.tensor([True, False, False]),
]  # fmt: skip


@pytest.mark.parametrize("x", VALUES, ids=repr)
@pytest.mark.parametrize("inverse", [True, False])
@pytest.mark.parametrize("counts", [True, False])
def test_unique_elements_and_runs(x, inverse, counts):
    result = decompose(aten.unique_consecutive.default, x.reshape(-1), inverse, counts)
    _same(result, aten.unique_consecutive.default(x.reshape(-1), inverse, counts))
    if x.dtype is not torch.bool:
        result = decompose(aten._unique2.default, x, True, inverse, counts)
        _same(result, aten._unique2.default(x, True, inverse, counts))


def _same(found, wanted):
    for have, want in zip(found, wanted, strict=True):
        torch.testing.assert_close(have, want)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_runs_of_slices(dim):
    x = torch.tensor([[1, 1, 2], [1, 1, 2], [3, 3, 3]])
    compare(aten.unique_dim_consecutive.default, x, dim, True, True)
    compare(aten.unique_consecutive.default, x, True, True, dim)


def test_writes_at_narrow_indices_of_a_later_dimension(check):
    index = torch.tensor([2, 0, 2], dtype=torch.int32)
    put = torch.index_put
    functions = {
        "columns": lambda x: aten.index_put(x, [None, index], x[:, :3], True),
        "mixed": lambda x: put(x, (index, index.long()), x[0, :3]),
    }
    check(functions, [torch.randn(4, 5)])
