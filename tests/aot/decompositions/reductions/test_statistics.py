"""Reductions over rank 0, over no elements and over all dimensions, beside eager torch."""

import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten


@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize(
    "operator", [aten.all.dim, aten.any.dim, aten.argmax.default, aten.argmin.default,
                 aten.prod.dim_int], ids=str,
)  # fmt: skip
def test_rank_0_along_a_dimension(operator, dim, keepdim):
    compare(operator, torch.tensor(2.5), dim, keepdim)
    compare(operator, torch.tensor(0.0), dim)


@pytest.mark.parametrize("operator", [aten.amax, aten.amin, aten.logsumexp], ids=str)
@pytest.mark.parametrize("dims", [[0], [-1]], ids=str)
def test_rank_0_along_dimensions(operator, dims):
    compare(operator.default, torch.tensor(2.5), dims)
    compare(operator.default, torch.tensor(2.5), dims, True)


@pytest.mark.parametrize("operator", [aten.argmax, aten.argmin], ids=str)
def test_the_place_in_rank_0(operator):
    compare(operator.default, torch.tensor(2.5))


def test_products_of_rank_0_in_another_type():
    compare(aten.prod.dim_int, torch.tensor(3), 0, dtype=torch.float32)


@pytest.mark.parametrize("operator", [aten.amax, aten.amin], ids=str)
@pytest.mark.parametrize("keepdim", [True, False])
def test_extremes_over_all_dimensions(operator, keepdim):
    compare(operator.default, torch.randn(2, 3, 4), [], keepdim)
    assert decompose(operator.default, torch.randn(2, 3), [1]) is NotImplemented


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("packet", [aten.std, aten.var, aten.std_mean, aten.var_mean], ids=str)
def test_variances_of_no_elements(packet):
    compare(packet.default, torch.zeros(0))
    compare(packet.default, torch.zeros(2, 0), False)
    for dims, keepdim in (([1], True), ([1], False), ([0, 1], True), ([-1], False)):
        compare(packet.dim, torch.zeros(2, 0), dims, True, keepdim)
        compare(packet.correction, torch.zeros(2, 0), dims, correction=0, keepdim=keepdim)
    compare(packet.correction, torch.zeros(0, 3), correction=1)
    assert decompose(packet.default, torch.zeros(3)) is NotImplemented


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("packet", [aten.std, aten.var, aten.std_mean, aten.var_mean], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_variances_with_a_correction_above_the_count(packet, dtype):
    x = torch.arange(6, dtype=dtype).reshape(3, 2)
    for correction in (4, 10, 3.5):
        compare(packet.correction, x, [0], correction=correction)
        compare(packet.correction, x[:1], [0, 1], correction=correction, keepdim=True)
    compare(packet.correction, x[:1], [0], correction=2)
    assert decompose(packet.correction, x, [0], correction=3) is NotImplemented


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
def test_variances_of_dynamic_counts_around_the_correction(check):
    def both(x):
        y = x.half()
        return (
            *torch.var_mean(x, 0, correction=2), *torch.std_mean(x, correction=2.5),
            x.var(0), x.std(0, keepdim=True), x.t().var(1, unbiased=False),
            y.var(0), *torch.std_mean(y, 0, correction=3),
        )  # fmt: skip

    sizes = {0: torch.export.Dim("n", min=0, max=20)}
    calls = [[torch.randn(n, 2)] for n in (5, 0, 1, 2, 3, 20)]
    check({"all": both}, *calls, dynamic=[sizes])
    check({"fixed": both}, calls[2])


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize("packet", [aten.std, aten.var, aten.std_mean, aten.var_mean], ids=str)
def test_variances_along_other_dimensions_than_the_empty_one_have_no_elements(packet):
    compare(packet.dim, torch.zeros(2, 0), [0], True, False)


@pytest.mark.parametrize(
    ("name", "value"), [("ones", 1), ("zeros", 0), ("new_ones", 1), ("new_zeros", 0)]
)
@pytest.mark.parametrize("dtype", [None, torch.int64, torch.float16], ids=str)
def test_dynamic_sizes_are_filled_by_full(name, value, dtype):
    operator = getattr(aten, name).default
    table = {operator: lambda *args, **kwargs: decompose(operator, *args, **kwargs)}

    def fill(x):
        size = [x.shape[0], 2]
        return operator(x, size, dtype=dtype) if "new" in name else operator(size, dtype=dtype)

    x = torch.ones(5, dtype=torch.float64)
    graph = make_fx(fill, decomposition_table=table, tracing_mode="symbolic")(x)
    targets = [node.target for node in graph.graph.nodes]
    assert aten.full.default in targets and operator not in targets
    torch.testing.assert_close(graph(x), fill(x))
    assert bool((graph(x) == value).all())


def test_static_sizes_are_left_alone():
    assert decompose(aten.ones.default, [2, 3]) is NotImplemented
    assert decompose(aten.new_zeros.default, torch.ones(2), [2, 3]) is NotImplemented
