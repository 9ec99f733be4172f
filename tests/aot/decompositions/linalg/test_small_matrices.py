"""Which matrices are unrolled."""

import pytest
import torch

from pelton.aot.decompositions.linalg.small_matrices import LARGEST, fits, info


@pytest.mark.parametrize(
    ("shape", "dtype", "answer"),
    [
        ((LARGEST, LARGEST), torch.float32, True),
        ((LARGEST + 1, 2), torch.float32, False),
        ((2, LARGEST + 1), torch.float64, False),
        ((99, 0, 3), torch.float16, True),
        ((2, 2), torch.complex64, False),
    ],
    ids=str,
)
def test_real_static_and_small_matrices_are_unrolled(shape, dtype, answer):
    assert fits(torch.zeros(shape, dtype=dtype)) is answer


def test_dynamic_sizes_are_not_unrolled():
    answers = []

    class Model(torch.nn.Module):
        def forward(self, x):
            answers.append((fits(x), fits(x[:, :3, :3])))
            return x

    sizes = ({1: torch.export.Dim("n", min=4)},)
    torch.export.export(Model(), (torch.ones(2, 4, 4),), dynamic_shapes=sizes, strict=False)
    assert answers[-1] == (False, True)


def test_the_first_pivot_that_failed_is_counted_from_1():
    failed = torch.tensor([[False, False, False], [True, False, True], [False, True, True]])
    torch.testing.assert_close(info(failed), torch.tensor([0, 1, 2], dtype=torch.int32))
    assert info(torch.zeros(2, 0, dtype=torch.bool)).tolist() == [0, 0]
    assert info(torch.ones(1, dtype=torch.bool)).shape == ()
