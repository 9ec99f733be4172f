"""Copies to the strides of another tensor."""

import torch

from tests.aot.decompositions.rewritten import rewritten, targets


def test_a_copy_to_other_strides_is_the_tensor_itself():
    graph = rewritten(lambda x: torch.ops.prims.copy_strided(x + 1, (1, 2)), torch.ones(2, 3))
    assert targets(graph) == [torch.ops.aten.add.Tensor, torch.ops.aten.alias.default]


def test_indices_of_a_transposed_tensor_are_filled_in_place(check):
    def filled(x):
        y = x.relu()
        y.T.index_fill_(0, torch.tensor([1, -1]), 5.0)
        return y

    check({"filled": filled, "new": lambda x: x.T.index_fill(1, torch.tensor([0]), 2.0)},
          [torch.randn(3, 4)], [torch.randn(1, 4)], dynamic=[{0: "rows"}])  # fmt: skip
