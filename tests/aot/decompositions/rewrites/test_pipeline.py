"""The rewrites together: subgraphs, metadata, and no dead nodes."""

import torch

from tests.aot.decompositions.rewritten import rewritten, targets

aten = torch.ops.aten


def branches(x):
    return torch.cond(x.sum() > 0, lambda x: (x == x) + 0, lambda x: (x < 1) + 0, (x,))


def test_graphs_of_branches_are_rewritten():
    module = rewritten(branches, torch.ones(3))
    children = [child for child in module.children() if isinstance(child, torch.fx.GraphModule)]
    called = [target for child in children for target in targets(child)]
    assert len(children) == 2 and aten.isnan.default in called
    assert aten.eq.Tensor not in called


def test_every_node_has_a_value_and_a_use():
    def function(x):
        return (x == x).sum(), x.reshape(-1, 2), x[:0] + 1

    module = rewritten(function, torch.ones(4, 3), dynamic=({0: 2 * torch.export.Dim("half")},))
    for node in module.graph.nodes:
        if node.op == "call_function":
            assert node.meta.get("val") is not None and node.users
