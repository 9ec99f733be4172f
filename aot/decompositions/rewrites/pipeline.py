"""Pipeline of all rewrites, in order."""

from __future__ import annotations

from torch.fx import GraphModule

from . import attention, comparisons, float8, scalars, strides, symint_arithmetic, views
from .constant_sizes import fix_constant_sizes
from .empties import fill_empties
from .inserter import Inserter, fake_mode_of
from .runtime_asserts import drop_checks

RULES = {
    **dict.fromkeys(views.TARGETS, views.rewrite_view),
    **dict.fromkeys(attention.TARGETS, attention.rewrite_attention),
    **dict.fromkeys(scalars.TARGETS, scalars.rewrite_scalar),
    **dict.fromkeys(comparisons.TARGETS, comparisons.rewrite_comparison),
    **dict.fromkeys(strides.TARGETS, strides.rewrite_strides),
    **dict.fromkeys(float8.TARGETS, float8.rewrite_conversion),
    **dict.fromkeys(symint_arithmetic.TARGETS, symint_arithmetic.rewrite_number),
}
"""The rewrite of each call target."""


def rewrite_graph(module: GraphModule) -> None:
    """Rewrite a graph of ATen operators and its subgraphs in place.

    Args:
        module: A module with `val` metadata on its nodes, as from `torch.export` and `make_fx`.
    """
    for child in module.children():
        if isinstance(child, GraphModule):
            rewrite_graph(child)
    drop_checks(module.graph)
    fill_empties(module.graph)
    nodes = list(module.graph.nodes)
    fake_mode = fake_mode_of(nodes)
    fix_constant_sizes(module.graph, fake_mode)
    for node in nodes:
        rule = RULES.get(node.target) if node.op == "call_function" else None
        if rule is not None and node.meta.get("val") is not None:
            rule(Inserter(node, fake_mode))
    module.graph.eliminate_dead_code()
    module.recompile()
