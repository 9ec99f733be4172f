"""Results whose size only a run tells: masks, places, selections, counts."""

import torch

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
