"""Programs in the importer's form: inputs, results, changed buffers and changed inputs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.export import Dim
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, SymIntArgument

from pelton import aot, runtime
from pelton.aot.capture.program import Program, inputs_and_outputs, normalize
from pelton.aot.capture.trace import tracing_settings

X = torch.ones(2, 3)


def exported(
    module: torch.nn.Module, *args: Any, shapes: Any = None
) -> torch.export.ExportedProgram:
    with tracing_settings():
        program = torch.export.export(module, args, dynamic_shapes=shapes)
        return program.run_decompositions({})


def names(nodes: list[Any]) -> list[str]:
    return [node.name for node in nodes]


class Function(torch.nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def test_constants_are_no_inputs_and_no_results_of_the_importer() -> None:
    program = normalize(exported(Function(lambda x, k: (x + k, 5, None)), X, 3))
    assert len(program.inputs) == 1 and len(program.outputs) == 3
    assert [out.value for out in program.outputs if isinstance(out, ConstantArgument)] == [5, None]
    assert len(program.graph_signature.input_specs) == 1
    assert len(program.graph_signature.output_specs) == 1


def test_sizes_among_the_results_are_integers_of_the_importer() -> None:
    program = normalize(
        exported(Function(lambda x: (x.shape[0], x + 1)), X, shapes=(({0: Dim("n")},),))
    )
    kinds = [type(spec.arg) for spec in program.graph_signature.output_specs]
    assert kinds[0] is SymIntArgument and kinds[1] is not SymIntArgument


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(2, 3))
        self.register_buffer("other", torch.zeros(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.copy_(x)
        self.other.copy_(self.count)
        return x


def test_each_changed_buffer_has_a_producer_of_its_own() -> None:
    module = Counter()
    program = normalize(exported(module, X))
    stored = [
        spec.arg.name
        for spec in program.graph_signature.output_specs
        if spec.kind is OutputKind.BUFFER_MUTATION
    ]
    assert len(set(stored)) == 2
    by_name = {node.name: node for node in program.graph.nodes}
    assert all(by_name[name].target is torch.ops.aten.clone.default for name in stored)
    assert all("val" in by_name[name].meta for name in stored)
    assert [name for name, _ in program.mutated_buffers()] == ["count", "other"]
    assert all(isinstance(tensor, torch.Tensor) for _, tensor in program.mutated_buffers())


class Changing(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        y.add_(1)
        return x * y


@pytest.mark.parametrize("asked", [False, True])
def test_changed_inputs_are_results_only_where_asked(asked: bool) -> None:
    program = normalize(exported(Changing(), X, X.clone()), return_changed_inputs=asked)
    assert names(program.changed_inputs) == (["y"] if asked else [])
    assert len(program.outputs) == (2 if asked else 1)
    kinds = {spec.kind for spec in program.graph_signature.output_specs}
    assert kinds == {OutputKind.USER_OUTPUT}


def test_tensors_are_found_by_their_names() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.register_buffer("cache", torch.zeros(3), persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.weight + self.cache

    program = normalize(exported(Net(), X))
    assert torch.equal(program.tensor("weight"), torch.ones(3))
    assert torch.equal(program.tensor("cache"), torch.zeros(3))
    with pytest.raises(AssertionError, match="absent"):
        program.tensor("absent")


def test_tokens_and_objects_are_refused() -> None:
    program = exported(Function(lambda x: x + 1), X)
    spec = program.graph_signature.input_specs[0]
    for kind in (InputKind.TOKEN, InputKind.CUSTOM_OBJ):
        spec.kind = kind
        with pytest.raises(aot.ExportError, match=f"a {kind.name.lower()}; only tensors and"):
            normalize(program)


def test_outputs_of_another_kind_are_refused() -> None:
    program = exported(Function(lambda x: x + 1), X)
    program.graph_signature.output_specs[0].kind = OutputKind.LOSS_OUTPUT
    with pytest.raises(aot.ExportError, match=r"the program gives .* a loss_output"):
        normalize(program)


def test_a_look_at_a_program_leaves_its_graph() -> None:
    program = exported(Counter(), X)
    before = len(program.graph.nodes)
    found: Program = inputs_and_outputs(program)
    assert len(program.graph.nodes) == before
    assert names(found.inputs) == ["x"] and len(found.outputs) == 1
    assert found.graph is program.graph and found.changed_inputs == []


# Tensors of the program


class Tensors(torch.nn.Module):
    def __init__(self, **used: torch.Tensor) -> None:
        super().__init__()
        self.register_buffer("weight", torch.ones(3))
        self.register_buffer("written", torch.zeros(3))
        self.register_buffer("sparse", torch.eye(3).to_sparse(), persistent=False)
        self.unused = torch.nn.Parameter(torch.eye(3))
        for name, tensor in used.items():
            self.register_buffer(name, tensor)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.written.copy_(x[0])
        x = x * self.weight
        return x @ self.used.to_dense() if hasattr(self, "used") else x


def test_a_module_may_have_tensors_of_any_layout_that_it_does_not_use() -> None:
    model = Tensors()
    exe = runtime.load(bytes(aot.export(model, X).compile().map_memory()))
    assert torch.equal(exe(X), X)
    meta = Function(lambda x: x + 1)
    meta.register_buffer("without_data", torch.ones(2, device="meta"))
    aot.export(meta, X)


def test_a_tensor_of_another_layout_that_is_used_is_refused_by_name_and_line() -> None:
    with pytest.raises(
        aot.ExportError, match=r"buffer used is a torch\.sparse_coo .*to_dense"
    ) as e:
        aot.export(Tensors(used=torch.eye(3).to_sparse()), X)
    assert e.value.location is not None and e.value.location.file == __file__
