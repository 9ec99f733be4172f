"""Scatters, segment reductions and histograms, beside eager torch."""

import math

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from pelton.aot.decompositions.table import corrections
from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

INF, NAN = math.inf, math.nan
INDEX = torch.tensor([[0, 1, 1], [0, 0, 2]])
REDUCTIONS = ["sum", "prod", "mean", "amin", "amax"]
FLOATS = [torch.float32, torch.float64, torch.float16]


def values(*shape, dtype=torch.float32):
    torch.manual_seed(0)
    return (torch.randn(shape) * 4).to(dtype)


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("reduce", ["prod", "mean", "amin", "amax"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_slices_are_reduced_at_an_index(reduce, include_self, dim):
    x, index = values(3, 3), torch.tensor([2, 0, 2, 2])
    source = values(4, 3) if dim == 0 else values(3, 4)
    for dtype in (torch.float32, torch.int64):
        compare(
            aten.index_reduce.default, x.to(dtype), dim, index, source.to(dtype), reduce,
            include_self=include_self, nested=True,
        )  # fmt: skip


@pytest.mark.filterwarnings("ignore:index_reduce")
def test_slices_of_rank_0_are_reduced():
    index = torch.tensor([0])
    for reduce in ("prod", "amax", "mean"):
        compare(aten.index_reduce.default, torch.tensor(2.0), 0, index, torch.tensor(3.0), reduce)


@pytest.mark.parametrize("accumulate", [True, False])
@pytest.mark.parametrize("shape", [(6,), (2, 3), (1,)], ids=str)
def test_elements_are_put_at_flat_places(shape, accumulate):
    x = values(*shape)
    index = torch.tensor([0, -1]) % x.numel() - x.numel() * torch.tensor([0, 1])
    if x.numel() > 1 or accumulate:
        compare(aten.put.default, x, index, torch.tensor([1.0, 2.0]), accumulate)


@pytest.mark.parametrize("index", [[], [0], [5, -6, -1], [[1, 2], [0, 0]]], ids=str)
def test_elements_are_taken_from_flat_places(index):
    compare(aten.take.default, values(2, 3), torch.tensor(index, dtype=torch.int64))


def test_elements_are_taken_at_rank_0():
    compare(aten.take.default, torch.tensor(3.0), torch.tensor(0))
    compare(aten.take.default, values(4), torch.tensor(-1))


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 1.5])
def test_segments_are_reduced(reduce, initial):
    data, lengths = values(6), torch.tensor([2, 0, 3, 1])
    offsets = torch.tensor([0, 2, 2, 5, 6])
    options = {"unsafe": True, "initial": initial}
    compare(aten.segment_reduce.default, data, reduce, lengths=lengths, **options)
    compare(aten.segment_reduce.default, data, reduce, offsets=offsets, **options)
    compare(aten.segment_reduce.default, values(6, 2), reduce, lengths=lengths, **options)
    batched = torch.tensor([[2, 1], [0, 3]])
    compare(aten.segment_reduce.default, values(2, 3), reduce, lengths=batched, axis=1, **options)


@pytest.mark.parametrize("bins", [1, 4])
@pytest.mark.parametrize("density", [True, False])
def test_histograms_of_equal_bins(bins, density):
    x = torch.tensor([[0.0, 0.25, 0.5], [1.0, 0.75, 0.99]])
    compare(aten.histogram.bin_ct, x, bins, density=density)
    compare(aten.histogram.bin_ct, x, bins, range=[0.2, 0.8], density=density)
    compare(aten.histogram.bin_ct, x, bins, weight=x + 1, density=density)


def test_histograms_of_equal_elements():
    compare(aten.histogram.bin_ct, torch.full((3,), 2.0), 4)
    compare(aten.histogram.bin_ct, torch.tensor(2.0), 1)


def test_histograms_of_edges():
    edges = torch.tensor([-INF, 0.0, 0.5, 1.0])
    compare(aten.histogram.bins_tensor, torch.tensor([0.0, -9.0, 1.0, 1.1, 0.5]), edges)


@pytest.mark.parametrize("repeats", [[1, 2, 0, 3], [0, 0], [4], [0, 1]], ids=str)
def test_indices_are_repeated(repeats):
    compare(aten.repeat_interleave.Tensor, torch.tensor(repeats))
    compare(
        aten.repeat_interleave.Tensor, torch.tensor(repeats, dtype=torch.int32),
        output_size=sum(repeats),
    )  # fmt: skip


@pytest.mark.parametrize("dim", [-1, -2])
def test_negative_dimensions_are_normalised(dim):
    x, source = values(3, 3), values(2, 3)
    compare(aten.scatter.src, x, dim, INDEX, source)
    compare(aten.scatter.value, x, dim, INDEX, 7.0)
    compare(aten.scatter_add.default, x, dim, INDEX, source)
    compare(aten.scatter_reduce.two, x, dim, INDEX, source, "amax")
    assert decompose(aten.scatter_add.default, x, dim + 2, INDEX, source) is NotImplemented


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.complex64], ids=str)
@pytest.mark.parametrize("include_self", [True, False])
def test_means_at_indices(dtype, include_self):
    if dtype.is_complex:
        pytest.skip("torch has no mean of complex numbers")
    compare(
        aten.scatter_reduce.two, values(3, 3, dtype=dtype), 0, INDEX, values(2, 3, dtype=dtype),
        "mean", include_self=include_self,
    )  # fmt: skip


@pytest.mark.parametrize("reduce", ["add", "multiply"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_scatters_by_the_name_of_a_reduction(reduce, dtype):
    x = values(3, 3, dtype=dtype)
    compare(aten.scatter.reduce, x, 0, INDEX, values(2, 3, dtype=dtype), reduce=reduce)
    compare(aten.scatter.value_reduce, x, 1, INDEX, 3, reduce=reduce)


@pytest.mark.parametrize("reduce", ["sum", "prod", "amin", "amax"])
@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32, torch.int16], ids=str)
def test_dynamic_scatters_exclude_the_elements_they_replace(reduce, dtype):
    def scatter(x, index, source):
        return torch.scatter_reduce(x, 0, index, source, reduce, include_self=False)

    x, source = values(4, 3, dtype=dtype), values(2, 3, dtype=dtype)
    table = {aten.scatter_reduce.two: corrections()[aten.scatter_reduce.two]}
    graph = make_fx(scatter, decomposition_table=table, tracing_mode="symbolic")(x, INDEX, source)
    calls = [node for node in graph.graph.nodes if node.target is aten.scatter_reduce.two]
    assert [call.kwargs.get("include_self", True) for call in calls] == [True]
    torch.testing.assert_close(graph(x, INDEX, source), scatter(x, INDEX, source))
