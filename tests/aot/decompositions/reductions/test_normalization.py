"""Normalisation with sizes that vary."""

import pytest
import torch
from torch.nn import functional as F

from pelton import aot
from tests.aot.decompositions.eager import compare, decompose

aten = torch.ops.aten

WEIGHT, BIAS = torch.linspace(0.5, 2, 3), torch.linspace(-1, 1, 3)
MEAN, VARIANCE = torch.linspace(-0.5, 0.5, 3), torch.linspace(0.5, 1.5, 3)


def test_instances_are_normalised_at_all_sizes(check):
    check(
        {
            "plain": lambda x: F.instance_norm(x),
            "weighted": lambda x: F.instance_norm(x, weight=WEIGHT, bias=BIAS, eps=1e-3),
            "as learnt": lambda x: F.instance_norm(
                x, MEAN, VARIANCE, WEIGHT, BIAS, use_input_stats=False
            ),
        },
        *[[torch.randn(batch, 3, length)] for batch, length in ((2, 5), (1, 9), (4, 2))],
        dynamic=[{0: "batch", 2: "length"}],
    )


def test_pictures_of_a_dynamic_batch_and_size_are_normalised(check):
    check(
        {"pictures": lambda x: F.instance_norm(x, weight=WEIGHT, bias=BIAS)},
        *[[torch.randn(size)] for size in ((2, 3, 5, 4), (1, 3, 2, 7), (3, 3, 8, 2))],
        dynamic=[{0: "batch", 2: "height", 3: "width"}],
    )


def test_instances_without_weights_are_normalised(check):
    check({"plain": lambda x: F.instance_norm(x)}, [torch.randn(2, 3, 5)])


def test_batches_are_normalised_by_their_own_statistics(check):
    check(
        {"batch": lambda x: F.batch_norm(x, None, None, WEIGHT, BIAS, training=True)},
        *[[torch.randn(size)] for size in ((4, 3, 5), (2, 3, 9))],
        dynamic=[{0: "batch", 2: "length"}],
    )


def test_statistics_that_would_be_lost_are_refused():
    layer = torch.nn.InstanceNorm1d(3, affine=True, track_running_stats=True)
    with pytest.raises(aot.UnsupportedOpError, match=r"running statistics.*call eval\(\)"):
        aot.export(layer.train(), args=(torch.randn(2, 3, 4),))
    aot.export(layer.eval(), args=(torch.randn(2, 3, 4),))


@pytest.mark.parametrize("shape", [(2, 3), (4, 3, 1), (2, 3, 5), (1, 3, 2, 4)], ids=str)
@pytest.mark.parametrize("affine", [True, False])
def test_batches_in_training_have_mean_0_and_variance_1(shape, affine):
    weight, bias = (WEIGHT, BIAS) if affine else (None, None)
    x = torch.randn(shape)
    arguments = (x, weight, bias, None, None, True, 0.1, 1e-5, False)
    result = decompose(aten.batch_norm.default, *arguments)
    wanted = F.batch_norm(x, None, None, weight, bias, training=True)
    torch.testing.assert_close(result, wanted, rtol=1e-4, atol=1e-5)
    kept = (*arguments[:3], MEAN, VARIANCE, False, *arguments[6:])
    assert decompose(aten.batch_norm.default, *kept) is NotImplemented


@pytest.mark.parametrize("shape", [(1, 3, 2), (2, 3, 5), (2, 3, 4, 1, 2)], ids=str)
def test_instances_without_weights_have_mean_0_and_variance_1(shape):
    compare(
        aten.instance_norm.default, torch.randn(shape), None, None, None, None, True, 0.1, 1e-5,
        False, rtol=1e-4, atol=1e-5,
    )  # fmt: skip


def test_running_statistics_of_instances_are_those_of_a_batch():
    compare(
        aten.instance_norm.default, torch.randn(2, 3, 5), None, BIAS, MEAN, VARIANCE, False, 0.1,
        1e-5, False,
    )  # fmt: skip
