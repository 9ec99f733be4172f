"""Runtime asserts, after the rewrite."""

import torch

from pelton.aot.decompositions.rewrites.runtime_asserts import CHECKS
from tests.aot.decompositions.rewritten import graph_of, rewritten, targets

aten = torch.ops.aten


def head(x):
    count = (x > 0).sum().item()
    torch._check(count >= 0)
    torch._check(count <= 3)
    return x[:count] * 2


def test_checks_are_removed_with_what_only_they_use():
    before = targets(graph_of(head, torch.ones(3)))
    module = rewritten(head, torch.ones(3))
    assert set(before) & set(CHECKS)
    assert not set(targets(module)) & set(CHECKS)
    assert not [
        node for node in module.graph.nodes if node.op == "call_function" and not node.users
    ]


def test_results_stay():
    x = torch.tensor([1.0, -1.0, 2.0])
    torch.testing.assert_close(rewritten(head, torch.ones(3))(x)[0], head(x))
