"""Empty tensors and products over empty dimensions, after the rewrite."""

import pytest
import torch

from tests.aot.decompositions.rewritten import rewritten, targets

aten = torch.ops.aten

PROGRAMS = {
    "sum of empties": lambda x: x[:0] + x[:0],
    "integers": lambda x: (x[:0] * 2).long(),
    "bools": lambda x: x[:, :0] > 0,
    "product without rows": lambda x: torch.mm(x[:0], x.T),
    "product over nothing": lambda x: torch.mm(x[:, :0], x[:, :0].T),
    "batched over nothing": lambda x: torch.bmm(x[None, :, :0], x[None, :0]),
    "vector over nothing": lambda x: torch.mv(x[:, :0], x[0, :0]),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_constants(name):
    x = torch.randn(3, 3)
    module = rewritten(PROGRAMS[name], x)
    assert set(targets(module)) == {aten.full.default}
    torch.testing.assert_close(module(x)[0], PROGRAMS[name](x))


def test_sums_over_nothing_and_other_tensors_are_computed():
    x = torch.randn(3, 3)
    assert aten.mm.default in targets(rewritten(lambda x: torch.mm(x, x), x))
    module = rewritten(lambda x: torch.cat([x[:0], x]), x)
    torch.testing.assert_close(module(x)[0], x)


def test_dynamic_sizes_are_left_alone():
    rows = torch.export.Dim("rows", max=9)
    module = rewritten(lambda x: x * 2, torch.randn(3, 2), dynamic=({0: rows},))
    assert targets(module) == [aten.mul.Tensor]
