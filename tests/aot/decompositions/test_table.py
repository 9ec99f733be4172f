"""The table: what is in it, how it is changed, and that each entry is still needed."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from pelton.aot.decompositions import (
    current_aot_decompositions,
    extend_aot_decompositions,
    legalize,
    rewrite_graph,
)
from pelton.aot.decompositions.dialect import DECOMPOSED_THOUGH_KNOWN, is_known
from pelton.aot.decompositions.table import FAMILIES

aten = torch.ops.aten

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def test_what_the_compiler_has_good_code_for_stays_whole():
    module = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    program = torch.export.export(module, (torch.ones(2, 3, 8),), strict=False)
    targets = {node.target for node in legalize(program).graph.nodes}
    assert aten.scaled_dot_product_attention.default in targets
    assert aten.layer_norm.default in targets
    assert aten.linear.default in targets


def test_each_call_gives_a_fresh_table():
    current_aot_decompositions().clear()
    assert current_aot_decompositions()


def test_extensions_nest_and_end():
    gelu, relu = aten.gelu.default, aten.relu.default
    before = current_aot_decompositions()
    with extend_aot_decompositions(add_ops=[aten.leaky_relu], remove_ops=[gelu]) as outer:
        assert aten.leaky_relu.default in outer and gelu not in outer
        with extend_aot_decompositions(from_current=False, add_ops=[relu]) as inner:
            assert relu in inner and aten.leaky_relu.default not in inner
            assert current_aot_decompositions() == inner
        assert current_aot_decompositions() == outer
    assert current_aot_decompositions() == before


def test_extensions_belong_to_their_thread():
    with extend_aot_decompositions(from_current=False), ThreadPoolExecutor(1) as pool:
        assert not current_aot_decompositions()
        assert pool.submit(current_aot_decompositions).result()


def test_entries_forced_on_known_operators_are_known():
    unneeded = [str(op) for op in DECOMPOSED_THOUGH_KNOWN if not is_known(op)]
    assert not unneeded, "the dialect has them no more: decomposed without being listed"


def test_every_entry_has_a_reason():
    assert all(entry.reason for family in FAMILIES for entry in family.entries)
    assert all(DECOMPOSED_THOUGH_KNOWN.values())


def test_legalize_leaves_the_given_program_alone():
    program = torch.export.export(_Views(), (torch.ones(2, 3, 4),), strict=False)
    before = str(program.graph)
    legal = legalize(program)
    assert str(program.graph) == before
    assert legal is not program
    assert [spec.arg.name for spec in legal.graph_signature.output_specs] == [
        node.name for node in legal.graph.output_node().args[0]
    ]


def test_corrections_hold_under_a_table_of_the_users_own():
    program = torch.export.export(_Views(), (torch.ones(2, 3, 4),), strict=False)
    targets = {node.target for node in legalize(program, {}).graph.nodes}
    assert aten.logical_and.default in targets
    assert aten.bitwise_and.Tensor not in targets


def test_every_new_node_has_a_value_and_a_line():
    shapes = {"x": {0: torch.export.Dim("b"), 1: torch.export.Dim("n")}}
    program = torch.export.export(_Views(), (torch.ones(2, 3, 4),), dynamic_shapes=shapes)
    for node in legalize(program).graph.nodes:
        if node.op == "call_function":
            assert node.meta.get("val") is not None, node
            assert node.stack_trace, node


def test_graphs_of_branches_are_rewritten():
    def true_branch(x):
        return x.reshape(x.shape[1], x.shape[0]).sum(0)

    def false_branch(x):
        return x.reshape(x.shape[1], x.shape[0]).sum(0) * 2

    class Branches(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.sum() > 0, true_branch, false_branch, (x,))

    shapes = {"x": {0: torch.export.Dim("a"), 1: torch.export.Dim("b")}}
    program = torch.export.export(Branches(), (torch.ones(2, 3),), dynamic_shapes=shapes)
    legal = program.run_decompositions(current_aot_decompositions())
    rewrite_graph(legal.graph_module)
    children = [m for m in legal.graph_module.children() if isinstance(m, torch.fx.GraphModule)]
    targets = {node.target for child in children for node in child.graph.nodes}
    assert aten.unflatten.int in targets
    assert aten.view.default not in targets


class _Views(torch.nn.Module):
    def forward(self, x):
        positive = (x > 0) & (x < 2)
        return x.reshape(x.shape[0] * x.shape[1], 4) + 1, positive
