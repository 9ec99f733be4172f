"""Legalization: when a program is traced again, and that the given one is not modified."""

import pytest
import torch
from torch.fx import Graph

from pelton.aot.decompositions import legalize
from pelton.aot.decompositions.legalize import applies, must_retrace

aten = torch.ops.aten

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


def exported(function, *args, **options):
    class Model(torch.nn.Module):
        def forward(self, *args):
            return function(*args)

    return torch.export.export(Model(), args, strict=False, **options)


def test_programs_without_an_applicable_decomposition_are_not_traced_again():
    program = exported(lambda x: torch.relu(x) + 1, torch.ones(2))
    assert not must_retrace(program, {})
    assert not must_retrace(program, {aten.add.Tensor: lambda *args, **kwargs: NotImplemented})
    assert must_retrace(program, {aten.add.Tensor: lambda x, y: x})


def test_mutations_and_subgraphs_are_traced_again():
    assert must_retrace(exported(lambda x: x.clone().add_(1), torch.ones(2)), {})

    def branch(x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    assert must_retrace(exported(branch, torch.ones(2)), {})


def test_a_decomposition_that_fails_on_fake_values_counts_as_applicable():
    program = exported(torch.relu, torch.ones(2))
    (node,) = program.graph.find_nodes(op="call_function", target=aten.relu.default)

    def fails(x):
        raise ValueError

    assert applies(fails, node)
    assert applies(lambda x: x, node)
    assert not applies(lambda x: NotImplemented, node)


def test_deciding_creates_no_sizes():
    program = exported(lambda x: torch.nonzero(x).shape[0] + x, torch.ones(3))
    (node,) = program.graph.find_nodes(op="call_function", target=aten.nonzero.default)
    environment = node.meta["val"].fake_mode.shape_env
    assert applies(lambda x: aten.nonzero.default(x), node)
    assert not environment.pending_fresh_unbacked_symbols


def test_deciding_neither_fixes_nor_narrows_a_size(capfd):
    batch = {0: torch.export.Dim("batch", min=1, max=8)}
    program = exported(lambda x: torch.relu(x), torch.ones(2, 3), dynamic_shapes=((batch,),))
    (node,) = program.graph.find_nodes(op="call_function", target=aten.relu.default)
    environment = node.meta["val"].fake_mode.shape_env

    def reads_the_size(x):
        return x if int(x.shape[0]) > 1 else NotImplemented

    assert applies(reads_the_size, node)
    assert not environment.replacements and not environment.guards
    assert capfd.readouterr().err == ""


def test_deciding_fixes_no_sizes():
    rows = torch.export.Dim("rows", min=1, max=9)
    for function in (lambda x: x.cumprod(1), lambda x: x.cummax(1)[0]):
        legal = legalize(exported(function, torch.ones(4, 3), dynamic_shapes=(({0: rows},),)))
        (node,) = legal.graph.find_nodes(op="placeholder")
        assert str(node.meta["val"].shape[0]) != "4"


def test_two_buffers_with_one_new_value_stay_two():
    class Buffers(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.zeros(2))
            self.register_buffer("b", torch.ones(2))

        def forward(self, x):
            self.b.copy_(x)
            self.a.copy_(self.b)
            return self.a + self.b

    program = torch.export.export(Buffers(), (torch.ones(2),), strict=False)
    legal = legalize(program)
    changed = dict(legal.graph_signature.buffers_to_mutate)
    assert sorted(changed.values()) == ["a", "b"] and len(changed) == 2


@pytest.mark.parametrize("table", [None, {}], ids=["current", "empty"])
def test_results_are_those_of_the_program(table):
    def function(x):
        return (x > 0) & (x < 2), torch.linalg.inv(x.reshape(2, 2)), x.sort()[1]

    x = torch.tensor([1.0, 3.0, -2.0, 5.0])
    legal = legalize(exported(function, x), table)
    torch.testing.assert_close(legal.module()(x), function(x))


def test_names_of_nodes_are_kept():
    program = exported(lambda x: torch.relu(x) * 2, torch.ones(2))
    names = [node.name for node in program.graph.nodes]
    legal = legalize(program)
    assert isinstance(legal.graph, Graph) and legal.graph is not program.graph
    assert [node.name for node in legal.graph.nodes] == names


def test_tensors_that_nothing_reads_or_writes_are_dropped():
    class Tensors(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("weight", torch.ones(3))
            self.register_buffer("written", torch.zeros(3))
            self.register_buffer("sparse", torch.eye(3).to_sparse(), persistent=False)
            self.unused = torch.nn.Parameter(torch.ones(3))

        def forward(self, x):
            self.written.copy_(x)
            return x * self.weight

    program = torch.export.export(Tensors(), (torch.ones(3),))
    functional = legalize(program)
    for legal in (functional, legalize(functional)):  # in which nothing reads what is written
        targets = [spec.target for spec in legal.graph_signature.input_specs]
        assert targets == ["weight", "written", None]
        assert len(legal.graph.find_nodes(op="placeholder")) == 3
    assert len(program.graph_signature.input_specs) == 5
