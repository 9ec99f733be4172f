"""Attention masks with fully masked rows, after the rewrite."""

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention as attend

from tests.aot.decompositions.rewritten import rewritten, targets

aten = torch.ops.aten

X = torch.randn(1, 2, 4, 8, generator=torch.Generator().manual_seed(0))
SEEN = torch.tensor([[True] * 4, [False] * 4, [True, False, True, False], [False] * 3 + [True]])
LOWEST = torch.finfo(torch.float32).min
MASKS = {
    "bool": SEEN,
    "infinite": torch.where(SEEN, 0.0, -torch.inf),
    "lowest": torch.where(SEEN, 0.0, LOWEST),
    "biased": torch.where(SEEN, 0.5, -1e4),
}


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("keyword", [True, False])
def test_results_are_those_of_torch(name, keyword):
    def function(x, mask):
        return attend(x, x, x, attn_mask=mask) if keyword else attend(x, x, x, mask)

    module = rewritten(function, X, MASKS[name])
    torch.testing.assert_close(module(X, MASKS[name])[0], function(X, MASKS[name]))
    assert targets(module)[-1] is aten.where.ScalarOther


@pytest.mark.parametrize("name", MASKS)
def test_masks_are_finite(name):
    module = rewritten(lambda x, mask: attend(x, x, x, mask), X, MASKS[name])
    node = module.graph.find_nodes(
        op="call_function", target=aten.scaled_dot_product_attention.default
    )[0]
    interpreter = torch.fx.Interpreter(module, garbage_collect_values=False)
    interpreter.run(X, MASKS[name])
    assert torch.isfinite(interpreter.env[node.args[3]] / 2).all()


def test_attention_without_a_mask_is_not_rewritten():
    module = rewritten(lambda x: attend(x, x, x, is_causal=True), X)
    assert targets(module) == [aten.scaled_dot_product_attention.default]
