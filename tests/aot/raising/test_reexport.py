"""Raised graphs traced again: their example sizes, dynamic dimensions and refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton.aot.raising import reexport
from pelton.aot.raising.fx import Port, Raised
from pelton.aot.spec.errors import DynamicShapeError, ExportError
from pelton.runtime.call.dtypes import dtype_of
from pelton.runtime.call.signature import Parameter, ScalarSpec, Signature, TensorSpec
from pelton.runtime.call.sizes import UNKNOWN, Dim


def raised(function: Any, *shapes: Any, dims: tuple[Dim, ...] = ()) -> Raised:
    """Return a function of float32 tensors (and numbers, for None) as if it were raised."""
    ports = [
        Port(f"x{i}", "user", f"x{i}", torch.int64, (), is_scalar=True, size=None)
        if shape is None
        else Port(f"x{i}", "user", f"x{i}", torch.float32, shape)
        for i, shape in enumerate(shapes)
    ]
    leaves = [
        ScalarSpec("int") if port.is_scalar else TensorSpec(dtype_of(port.dtype), port.shape)
        for port in ports
    ]
    parameters = tuple(Parameter(p.name, "POSITIONAL_OR_KEYWORD", i) for i, p in enumerate(ports))
    signature = Signature("main", parameters, tuple(leaves), 0, (leaves[0],), dims)
    module = torch.fx.symbolic_trace(function)
    return Raised("main", module, signature, tuple(ports), ())


def sizes_of(*dims: Dim, shape: Any = (5,)) -> list[dict[str, int]]:
    return reexport._examples(raised(lambda x0: x0, shape, dims=dims))


def test_the_optimal_sizes_come_first_and_then_such_that_differ() -> None:
    found = sizes_of(Dim("a", 1, 8, 4), Dim("b", 1, 8, 4), Dim("c", 0, None))
    assert found[0] == {"a": 4, "b": 4, "c": 2}
    assert found[1] == {"a": 2, "b": 3, "c": 4}


@pytest.mark.parametrize(
    ("dim", "size"),
    [
        (Dim("n"), 2), (Dim("n", 0, 1), 1), (Dim("n", 1, 1), 1), (Dim("n", 5, None), 6),
        (Dim("n", 5, 5), 5), (Dim("n", 0, 0), 0), (Dim("n", 1, 9, 1), 2), (Dim("n", 1, 9, 0), 2),
    ],
    ids=str,
)  # fmt: skip
def test_an_example_is_no_size_that_torch_takes_for_special_where_it_may(
    dim: Dim, size: int
) -> None:
    assert sizes_of(dim) == [{"n": size}]


def test_sizes_run_out_where_bounds_are_narrow() -> None:
    assert sizes_of(Dim("a", 2, 3), Dim("b", 2, 3), Dim("c", 2, 3)) == [{"a": 2, "b": 3, "c": 2}]


@pytest.mark.parametrize("name", ["batch", "arg0.dim", "0", "a b"])
def test_names_of_dimensions_may_be_anything(name: str) -> None:
    program = reexport.reexport(raised(lambda x0: x0 + 1, (name, 2), dims=(Dim(name, 1, 8, 4),)))
    ((low, high),) = [(r.lower, r.upper) for r in program.range_constraints.values()]
    assert (int(low), int(high)) == (1, 8)
    assert program.module()(torch.ones(7, 2)).shape == (7, 2)


@pytest.mark.parametrize(
    ("size", "rows"),
    [
        (["*", 2, "n"], [2, 6]), (["+", "n", 1], [2, 4]), (["-", "n", 1], [1, 4]),
        (["+", ["*", 3, "n"], -2], [1, 7]),
    ],
    ids=["double", "more", "less", "linear"],
)  # fmt: skip
def test_sizes_that_depend_on_a_dimension(size: Any, rows: list[int]) -> None:
    program = reexport.reexport(
        raised(lambda x0: x0 * 2, (size,), dims=(Dim("n", 1, 8, 4),))
    ).module()
    for count in rows:
        assert program(torch.ones(count)).tolist() == [2] * count


def test_a_size_that_only_a_run_tells_and_a_number_are_dynamic() -> None:
    program = reexport.reexport(raised(lambda x0, x1: x0 * x1, (UNKNOWN,), None)).module()
    assert program(torch.ones(5), 7).tolist() == [7] * 5
    assert program(torch.ones(2), -1).tolist() == [-1] * 2


def test_a_function_without_inputs() -> None:
    graph = torch.fx.Graph()
    graph.output((graph.call_function(torch.ops.aten.ones.default, ([2],)),))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    program = reexport.reexport(Raised("main", module, Signature("main"), (), ()))
    assert program.module()()[0].tolist() == [1, 1]


def test_a_size_that_would_be_fixed_is_refused() -> None:
    with pytest.raises(DynamicShapeError, match=r"main\(\): a size would be fixed: "):
        reexport.reexport(raised(lambda x0: x0 + torch.ones(4), ("n",), dims=(Dim("n", 1, 8, 4),)))


def test_what_torch_cannot_trace_is_told_with_its_reason() -> None:
    def broken(x0: torch.Tensor) -> torch.Tensor:
        return torch.ops.aten.mm.default(x0, x0)

    with pytest.raises(
        ExportError, match=r"main\(\) cannot be traced again: RuntimeError: .*\[2, 3\]"
    ):
        reexport.reexport(raised(broken, (2, 3)))


def test_the_module_keeps_its_parameters_and_buffers() -> None:
    layer = torch.nn.Linear(2, 2)
    program = reexport.reexport(raised(layer, (3, 2)))
    assert sorted(program.state_dict) == ["bias", "weight"]
