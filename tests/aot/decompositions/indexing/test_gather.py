"""Strided views, embedding bags and scatters of slices, beside eager torch."""

import math

import pytest
import torch

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

VIEWS = [
    ([], [], 3), ([4], [2], 0), ([2, 3], [3, 1], 1), ([2, 2], [1, 1], 0), ([3, 2], [0, 4], 2),
    ([2, 0], [1, 1], 0), ([2, 2, 2], [4, 2, 1], None),
]  # fmt: skip


@pytest.mark.parametrize(("size", "stride", "offset"), VIEWS, ids=str)
def test_strided_views(size, stride, offset):
    x = torch.arange(12.0).reshape(3, 4)
    compare(aten.as_strided.default, x, size, stride, offset)
    compare(aten.as_strided_copy.default, x, size, stride, offset)


@pytest.mark.parametrize(
    ("size", "stride", "offset"), [view for view in VIEWS if view[0] not in ([2, 2], [3, 2])],
    ids=str,
)  # fmt: skip
def test_strided_views_are_replaced(size, stride, offset):
    x, source = torch.arange(12.0).reshape(3, 4), torch.randn(size)
    compare(aten.as_strided_scatter.default, x, source, size, stride, offset)


def test_strided_views_of_transposed_tensors_are_refused():
    x = torch.arange(12.0).reshape(3, 4).T
    with pytest.raises(NotImplementedError, match="row after row"):
        decompose(aten.as_strided.default, x, [2], [1])


@pytest.mark.parametrize("dtype", [None, torch.int64, torch.float64, torch.bool], ids=str)
def test_uninitialised_tensors_are_zeros(dtype):
    x = torch.ones(3, 2, dtype=torch.float16)
    made = {
        torch.float32: [
            decompose(aten.empty.memory_format, [2, 3], dtype=dtype),
            decompose(aten.empty_strided.default, [2, 3], [1, 2], dtype=dtype),
            decompose(aten.empty_permuted.default, [2, 3], [1, 0], dtype=dtype),
        ],
        torch.float16: [
            decompose(aten.new_empty.default, x, [2, 3], dtype=dtype),
            decompose(aten.new_empty_strided.default, x, [2, 3], [1, 2], dtype=dtype),
            decompose(aten.empty_like.default, x.T, dtype=dtype),
        ],
    }
    for default, tensors in made.items():
        for tensor in tensors:
            torch.testing.assert_close(tensor, torch.zeros(2, 3, dtype=dtype or default))


@pytest.mark.parametrize("index", [-1, -3])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices_are_replaced_from_the_end(index, dim):
    compare(aten.select_scatter.default, torch.randn(3, 3), torch.randn(3), dim, index)
    x = torch.randn(3, 3)
    assert decompose(aten.select_scatter.default, x, x[0], 0, 1) is NotImplemented


BAGS = [[0, 2, 4], [0, 0, 5], [0, 5, 5], [0, 1, 2, 3, 4]]


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("offsets", BAGS, ids=str)
@pytest.mark.parametrize("padding_idx", [-1, 1])
def test_bags_of_embeddings(mode, offsets, padding_idx):
    weight, indices = torch.randn(4, 3), torch.tensor([0, 1, 3, 1, 2])
    bags = torch.tensor(offsets)
    arguments = (weight, indices, bags, False, mode, False, None, False, padding_idx)
    result = decompose(aten._embedding_bag.default, *arguments)
    wanted = aten._embedding_bag.default(*arguments)
    torch.testing.assert_close(result[0], wanted[0])


def test_bags_with_weights_and_a_last_offset():
    weight, indices = torch.randn(4, 3), torch.tensor([0, 1, 3, 1, 2])
    offsets, factors = torch.tensor([0, 2, 2, 5]), torch.randn(5)
    arguments = (weight, indices, offsets, False, 0, False, factors, True)
    result = decompose(aten._embedding_bag.default, *arguments)
    torch.testing.assert_close(result[0], aten._embedding_bag.default(*arguments)[0])


@pytest.mark.parametrize("p", [1, 2, 3.0, math.inf])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices_are_scaled_to_a_norm(p, dim):
    if p == math.inf:
        pytest.skip("torch does not take it")
    compare(aten.renorm.default, torch.randn(3, 4, 2) * 3, p, dim, 2.5)


@pytest.mark.parametrize("offset", [0, 1, -1, 2, -2])
@pytest.mark.parametrize("shape", [(3, 3), (3, 4), (4, 3), (1, 3)], ids=str)
def test_diagonals_are_replaced(offset, shape):
    x = torch.randn(shape)
    if -shape[0] < offset < shape[1]:
        source = torch.randn(x.diagonal(offset).shape)
        compare(aten.diagonal_scatter.default, x, source, offset)


@pytest.mark.parametrize(("dim1", "dim2"), [(0, 2), (2, 0), (-1, 1), (1, 0)])
def test_diagonals_of_any_two_dimensions_are_replaced(dim1, dim2):
    x = torch.randn(3, 4, 5)
    source = torch.randn(x.diagonal(1, dim1, dim2).shape)
    compare(aten.diagonal_scatter.default, x, source, 1, dim1, dim2)
