"""Convolutions with sizes that vary."""

import pytest
import torch
from torch.nn import functional as F


@pytest.mark.parametrize("batch", [1, 2])
def test_groups_of_pictures_of_a_dynamic_size(check, batch):
    weight, bias = torch.linspace(-1, 1, 12 * 2 * 9).view(12, 2, 3, 3), torch.linspace(-1, 1, 12)
    check(
        {
            "groups": lambda x: F.conv2d(x, weight, bias, stride=2, padding=1, groups=4),
            "as traced by AOTAutograd": lambda x: torch.convolution(
                x, weight, bias, [1, 1], [1, 1], [1, 1], False, [0, 0], 4
            ),
            "depthwise": lambda x: F.conv2d(x, weight[:8, :1], padding=2, groups=8),
        },
        *[[torch.randn(batch, 8, *size)] for size in ((6, 7), (3, 12), (9, 4))],
        dynamic=[{2: "height", 3: "width"}],
    )
