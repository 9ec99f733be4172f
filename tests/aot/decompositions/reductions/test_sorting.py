"""Sorts of one shape keep their own indices, and equal elements keep their order."""

import torch


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
