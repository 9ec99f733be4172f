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
