"""Bit patterns read as another type, of sizes that vary."""

import pytest
import torch

from tests.aot.decompositions.eager import compare

aten = torch.ops.aten


def test_narrower_and_wider_types_of_dynamic_sizes(check):
    check(
        {
            "half": lambda x: x.view(torch.int32),
            "eighth": lambda x: x.view(torch.uint8) + 1,
            "float": lambda x: x.view(torch.float16),
            "wider": lambda x: x.view(torch.int16).view(torch.int64),
            "float to float": lambda x: x.to(torch.float32).view(torch.float64).view(torch.int64),
            "same": lambda x: x.to(torch.float32).view(torch.int32),
        },
        *[[torch.randint(-(2**62), 2**62, shape)] for shape in ((4, 6), (2, 2), (0, 4))],
        dynamic=[{0: "rows", 1: torch.export.Dim.AUTO}],
    )


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.float32])
def test_static_sizes_are_left_to_the_compiler(dtype):
    with pytest.raises(AssertionError, match="not decomposed"):
        compare(aten.view.dtype, torch.arange(6).view(1, 6), dtype)
