"""Random numbers: their ranges, types and means, which torch's generator does not share."""

import pytest
import torch

from tests.aot.decompositions.eager import decompose

aten = torch.ops.aten


@pytest.mark.parametrize("dtype", [None, torch.int64, torch.int32, torch.float16], ids=str)
def test_integers_of_a_range(dtype):
    torch.manual_seed(0)
    x = torch.zeros(40, 50)
    found = decompose(aten.randint_like.default, x, 5, dtype=dtype)
    assert found.dtype is (dtype or torch.float32) and found.shape == x.shape
    assert set(found.flatten().tolist()) == {0, 1, 2, 3, 4}
    found = decompose(aten.randint_like.low_dtype, x, -2, 1, dtype=dtype)
    assert set(found.flatten().tolist()) == {-2, -1, 0}


def test_normal_numbers_have_their_mean_and_deviation():
    torch.manual_seed(0)
    options = {"dtype": torch.float32, "device": "cpu", "requires_grad": False}
    found = decompose(torch.ops.prims.normal.default, [100, 100], mean=3.0, std=0.5, **options)
    torch.testing.assert_close(found.mean(), torch.tensor(3.0), rtol=0, atol=0.05)
    torch.testing.assert_close(found.std(), torch.tensor(0.5), rtol=0, atol=0.05)


@pytest.mark.parametrize("replacement", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16], ids=str)
def test_indices_are_as_likely_as_their_weights(replacement, dtype):
    torch.manual_seed(0)
    weights = torch.tensor([1.0, 0.0, 3.0]).to(dtype).expand(4000, 3)
    found = decompose(aten.multinomial.default, weights, 1, replacement)
    assert found.dtype is torch.int64 and found.shape == (4000, 1)
    share = torch.bincount(found[:, 0], minlength=3) / 4000
    torch.testing.assert_close(share, torch.tensor([0.25, 0.0, 0.75]), rtol=0, atol=0.03)


def test_without_replacement_no_index_comes_twice():
    found = decompose(aten.multinomial.default, torch.rand(50, 6) + 0.1, 6)
    torch.testing.assert_close(found.sort(1)[0], torch.arange(6).expand(50, 6))


def test_a_single_vector_of_weights():
    assert (
        decompose(aten.multinomial.default, torch.tensor([0.0, 2.0]), 3, True).tolist() == [1] * 3
    )
