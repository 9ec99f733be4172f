"""Padding beside sizes that vary."""

import torch
from torch.nn import functional as F

WEIGHT = torch.linspace(-1, 1, 4 * 3 * 9).view(4, 3, 3, 3)


def test_padding_leaves_a_dynamic_batch_dynamic(check):
    check(
        {
            "a convolution with one result": lambda x: F.conv2d(x, WEIGHT, stride=2, padding=1),
            "cut and padded": lambda x: F.pad(x, [-1, 2, 1, -1], value=3.0),
            "cut": lambda x: F.pad(x, [0, -1]),
        },
        *[[torch.randn(batch, 3, 2, 2)] for batch in (2, 1, 5)],
        dynamic=[{0: "batch"}],
    )
