"""Sorts of one shape keep their own indices, and equal elements keep their order."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose
from tests.programs import assert_equals_eager, compiled

aten = torch.ops.aten

INF, NAN = math.inf, math.nan


def test_two_sorts_of_one_shape_do_not_share_indices(check):
    torch.manual_seed(0)
    check(
        {
            "largest": lambda x, y: (*x.topk(2), *y.topk(2)),
            "smallest": lambda x, y: (*x.topk(3, largest=False), *y.topk(3, 0)),
            "sorted": lambda x, y: (*x.sort(-1), *y.sort(-1, descending=True)),
            "order": lambda x, y: (x.argsort(0), y.argsort(0)),
            "medians": lambda x, y: (x.median(1)[0], y.kthvalue(2, 1)[0]),
        },
        [torch.randn(6, 4), torch.randn(6, 4)],
    )


def test_equal_elements_keep_their_order(check):
    x = torch.tensor([[2, 1, 2, 1, 2], [0, 0, 0, 0, 0]])
    check(
        {
            "sorted": lambda x: torch.sort(x, stable=True),
            "falling": lambda x: torch.sort(x, descending=True, stable=True),
            "running": lambda x: torch.cummax(x, 1),
        },
        [x],
    )


def test_infinities_are_found_once_each(check):
    x = torch.tensor([[1.0, -torch.inf, -torch.inf, 2.0]])
    check({"all": lambda x: x.topk(4)[1].sum(), "values": lambda x: x.topk(4)[0]}, [x])


LONG = torch.randn(2, 300)
LONG[0, 3:30] = torch.nan
LONG[1, 5], LONG[1, 9], LONG[1, 70] = torch.inf, -torch.inf, torch.nan
LONG[:, 100:150] = 0.5


SORTS = {
    "sorted": lambda x: torch.sort(x, stable=True),
    "falling": lambda x: torch.sort(x, stable=True, descending=True),
    "flipped": lambda x: torch.argsort(x.flip(1), stable=True),
}


def test_long_vectors_are_sorted_as_eager_does(check):
    check(SORTS, [LONG])
    check(SORTS, [LONG[:, :129]])


def test_vectors_of_lengths_that_vary_are_sorted(check):
    varies = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)
    check(SORTS, [LONG], [LONG[:1, :77]], [LONG[:, :6]], dynamic=varies)


def test_long_vectors_in_a_number_that_varies_are_sorted(check):
    batch = ({0: torch.export.Dim.DYNAMIC},)
    check(SORTS, [LONG], [LONG[:1]], [torch.cat([LONG, -LONG])], dynamic=batch)


def test_long_columns_are_sorted(check):
    check(
        {"columns": lambda x: torch.sort(x, dim=0, stable=True)}, [torch.randint(0, 40, (100, 3))]
    )


def test_nan_is_larger_than_infinity(check):
    nan, inf = torch.nan, torch.inf
    x = torch.tensor([[inf, nan, 1.0, nan, -inf, inf, 0.0]])
    check(
        {
            "sorted": lambda x: torch.sort(x, stable=True),
            "falling": lambda x: torch.sort(x, descending=True, stable=True),
            "largest": lambda x: x.topk(4)[0],
            "smallest": lambda x: x.topk(6, largest=False)[0],
        },
        [x],
    )


VALUES = {
    "floats": torch.tensor([2.0, NAN, -INF, 1.0, 2.0, INF, -0.0, 0.0, NAN]),
    "integers": torch.tensor([3, -(2**63), 2**63 - 1, 0, 3, 0]),
    "small integers": torch.tensor([3, -32768, 32767, 0], dtype=torch.int16),
    "bytes": torch.tensor([200, 3, 255, 0, 3], dtype=torch.uint8),
    "bools": torch.tensor([True, False, True, False]),
    "half": torch.tensor([2.0, NAN, -INF, 1.0]).half(),
    "one": torch.tensor([5.0]),
    "none": torch.zeros(0),
    "long": torch.randint(0, 9, (70,), generator=torch.Generator().manual_seed(0)),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("descending", [True, False])
def test_stable_sorts(name, descending):
    x = VALUES[name]
    compare(aten.sort.stable, x, stable=True, dim=0, descending=descending)
    compare(aten.argsort.stable, x, stable=True, descending=descending)


@pytest.mark.parametrize("name", [name for name in VALUES if name != "none"])
@pytest.mark.parametrize("largest", [True, False])
def test_the_largest_in_order(name, largest):
    x = VALUES[name]
    for k in {0, 1, min(3, len(x)), len(x)}:
        result = decompose(aten.topk.default, x, k, 0, largest)
        wanted = torch.sort(x, stable=True, descending=largest)
        torch.testing.assert_close(result[0], wanted[0][:k], equal_nan=True)
        torch.testing.assert_close(x[result[1]], result[0], equal_nan=True)
        assert len(set(result[1].tolist())) == k


@pytest.mark.parametrize("dim", [0, 1, 2, -1, -3])
def test_sorts_along_each_dimension(dim):
    x = torch.randint(0, 5, (3, 4, 2), generator=torch.Generator().manual_seed(1))
    compare(aten.sort.stable, x, stable=True, dim=dim)
    compare(aten.argsort.stable, x, stable=True, dim=dim, descending=True)


def test_rank_0_is_its_own_order():
    x = torch.tensor(3.0)
    compare(aten.sort.default, x, 0)
    compare(aten.sort.stable, x, stable=True, dim=-1)
    compare(aten.argsort.default, x)
    compare(aten.topk.default, x, 1)


@pytest.mark.parametrize("length", [65, 100, 128, 129])
def test_networks_of_exchanges_sort_any_length(length):
    x = torch.randint(0, 20, (2, length), generator=torch.Generator().manual_seed(length))
    for descending in (True, False):
        compare(aten.sort.stable, x, stable=True, dim=1, descending=descending)


def test_elements_are_in_none_or_some_of_a_dynamic_number(tmp_path):
    def both(elements, tests):
        return torch.isin(elements, tests), torch.isin(elements, tests, invert=True)

    elements = torch.tensor([[0.0, 1.0], [2.0, NAN]])
    shapes = (None, {0: "n"})
    exe = compiled(tmp_path, both, (elements, torch.tensor([1.0, 5.0])), dynamic_shapes=shapes)
    tests = ([], [0.0], [2.0, 2.0, -1.0], [NAN, 9.0, 1.0, 0.0])
    assert_equals_eager(exe, both, *[(elements, torch.tensor(t)) for t in tests])
