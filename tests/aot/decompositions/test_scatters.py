"""Reductions at indices, of tensors whose sizes vary."""

import pytest
import torch

ROWS, PICKED, COLUMNS = (torch.export.Dim(name, min=2) for name in ("rows", "picked", "columns"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
@pytest.mark.parametrize("columns", [None, COLUMNS], ids=["columns fixed", "columns vary"])
def test_reductions_with_and_without_what_was_there(dtype, columns, check):
    def call(rows, picked, width):
        torch.manual_seed(rows)
        x, source = torch.randn(rows, width) * 3, torch.randn(picked, width) * 3
        return x.to(dtype), torch.randint(0, rows, (picked, width)), source.to(dtype)

    def reduced(reduction, own):
        return lambda x, index, source: x.scatter_reduce(
            0, index, source, reduction, include_self=own
        )

    along = {} if columns is None else {1: columns}
    calls = [(6, 4, 5), (2, 2, 5), (9, 30, 5)]
    if columns is not None:
        calls.append((3, 7, 40))
    check(
        {
            f"{reduction} {'with' if own else 'without'}": reduced(reduction, own)
            for reduction in ("sum", "prod", "amin", "amax")
            for own in (True, False)
        },
        *(call(*sizes) for sizes in calls),
        dynamic=[{0: ROWS, **along}, {0: PICKED, **along}, {0: PICKED, **along}],
    )
