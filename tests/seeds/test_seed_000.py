"""Every example of the seed `000` (nvtripy's pipeline), in our spelling, on the CPU."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import torch

from pelton import aot, runtime

EXAMPLES = {
    "Compilation flow: function, MLIR, artifact, executable": "test_flow",
    "tp.compile(): args, kwargs, optimization_level": "test_compile_takes_args_kwargs_and_level",
    "Only InputInfo and DimensionInputInfo are parameters": "test_only_specs_are_parameters",
    "InputInfo: static shape": "test_input_info_of_static_shape",
    "InputInfo: dynamic dimensions": "test_input_info_of_dynamic_dimensions",
    "InputInfo: named dimensions": "test_input_info_of_named_dimensions",
    "DimensionInputInfo": "test_dimension_input_info",
    "Executable: running compiled functions": "test_executable_runs",
    "Executable: input_infos": "test_executable_states_its_inputs",
    "Executable: stream": "test_executable_has_no_stream_on_the_cpu",
    "Executable: __signature__": "test_executable_can_be_inspected",
    "Inputs are evaluated tensors": "test_inputs_are_evaluated_tensors",
    "Compiling modules": "test_compiling_modules",
    "Compiling modules: state_dict names": "test_weights_are_named_by_state_dict",
    "Compiling modules: weights are constants": "test_weights_are_constants",
    "Dynamic shapes: basic": "test_basic_dynamic_dimensions",
    "Dynamic shapes: named dimensions": "test_named_dimensions_must_be_equal",
    "Dynamic shapes: scalar dimension inputs": "test_scalar_dimension_inputs",
    "Options: optimization level": "test_optimization_levels",
    "Options: timing cache": "test_timing_cache",
    "Requirement 1: pure": "test_side_effects_are_refused",
    "Requirement 2: tensors are returned": "test_other_results_are_refused",
    "Requirement 3: collections are frozen": "test_collections_of_tensors_are_constants",
    "Requirement 4: variadic arguments are frozen": "test_variadic_arguments_are_frozen",
}
"""Each example and rule of the seed, and the test that runs it."""

FLOAT = torch.float32


def add(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a + b


@pytest.fixture(scope="module")
def compiled_add() -> runtime.Executable:
    return aot.compile(add, args=[aot.InputInfo((2, 4), dtype=FLOAT)] * 2)


@pytest.fixture(scope="module")
def dynamic_add() -> runtime.Executable:
    shape = ((1, 2, 3), 2)
    return aot.compile(add, args=[aot.InputInfo(shape, FLOAT), aot.InputInfo(shape, FLOAT)])


class MyModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def loaded_model() -> MyModel:
    model = MyModel()
    weights = {"linear.weight": torch.arange(12.0).reshape(4, 3), "linear.bias": torch.ones(4)}
    model.load_state_dict(weights)
    return model


def test_every_example_has_a_test() -> None:
    missing = [name for name in EXAMPLES.values() if name not in globals()]
    assert not missing


def test_flow(tmp_path: Path) -> None:
    exported = aot.export(add, args=[aot.InputInfo((2,), FLOAT), aot.InputInfo((2,), FLOAT)])
    assert "torch.aten.add.Tensor" in str(exported.mlir_module)
    exported.compile(tmp_path / "add.vmfb")
    executable = runtime.load(tmp_path / "add.vmfb")
    assert executable(torch.ones(2), torch.ones(2)).tolist() == [2, 2]


def test_compile_takes_args_kwargs_and_level() -> None:
    info = aot.InputInfo((2,), FLOAT)
    executable = aot.compile(add, optimization_level=2, args=[info], kwargs={"b": info})
    assert executable.info.options["optimization_level"] == 2
    assert executable(torch.ones(2), b=torch.ones(2)).tolist() == [2, 2]


def test_only_specs_are_parameters() -> None:
    executable = aot.compile(add, args=[torch.ones(2), aot.InputInfo((2,), FLOAT)])
    assert list(executable.input_infos) == ["b"]
    assert executable(torch.ones(2)).tolist() == [2, 2]


def test_input_info_of_static_shape() -> None:
    bounds = aot.InputInfo(shape=(2, 4), dtype=FLOAT).shape_bounds
    assert (bounds.min, bounds.opt, bounds.max) == ((2, 4), (2, 4), (2, 4))


def test_input_info_of_dynamic_dimensions() -> None:
    bounds = aot.InputInfo(shape=((1, 2, 3), 4), dtype=FLOAT).shape_bounds
    assert (bounds.min, bounds.opt, bounds.max) == ((1, 4), (2, 4), (3, 4))


def test_input_info_of_named_dimensions() -> None:
    window = aot.NamedDimension("window", 3, 5, 7)
    info = aot.InputInfo(shape=(1, window, window), dtype=FLOAT)
    assert info.dimension_names == {1: "window", 2: "window"}
    assert info.shape_bounds.max == (1, 7, 7)


def test_dimension_input_info() -> None:
    assert aot.DimensionInputInfo(value_bounds=(1, 2, 4)).value_bounds == (1, 2, 4)


def test_executable_runs(compiled_add: runtime.Executable) -> None:
    assert torch.equal(compiled_add(torch.ones(2, 4), torch.ones(2, 4)), torch.full((2, 4), 2.0))


def test_executable_states_its_inputs(compiled_add: runtime.Executable) -> None:
    infos = compiled_add.input_infos
    assert list(infos) == ["a", "b"]
    info = infos["a"]
    assert isinstance(info, runtime.InputInfo)
    assert info.shape_bounds.opt == (2, 4)
    assert info.dtype.name == "float32"


def test_executable_has_no_stream_on_the_cpu(compiled_add: runtime.Executable) -> None:
    assert compiled_add.stream is None


def test_executable_can_be_inspected(compiled_add: runtime.Executable) -> None:
    assert list(inspect.signature(compiled_add).parameters) == ["a", "b"]


def test_inputs_are_evaluated_tensors(compiled_add: runtime.Executable) -> None:
    strided = torch.ones(4, 2).T  # a lazy view in memory, as far as torch has such things
    assert torch.equal(compiled_add(strided, strided), strided * 2)


def test_compiling_modules() -> None:
    model = loaded_model()
    compiled_model = aot.compile(model, args=[aot.InputInfo(shape=(2, 3), dtype=FLOAT)])
    x = torch.rand(2, 3)
    torch.testing.assert_close(compiled_model(x), model(x).detach())


def test_weights_are_named_by_state_dict() -> None:
    """Which a compiled artifact shows no more; the module it is compiled from does."""
    exported = aot.export(loaded_model(), args=[aot.InputInfo((2, 3), FLOAT)])
    assert "@__auto.linear.weight" in str(exported.mlir_module)


def test_weights_are_constants() -> None:
    model = loaded_model()
    compiled_model = aot.compile(model, args=[aot.InputInfo((2, 3), FLOAT)])
    before = compiled_model(torch.ones(2, 3))
    with torch.no_grad():
        model.linear.weight.zero_()
    assert list(compiled_model.input_infos) == ["x"]
    assert torch.equal(compiled_model(torch.ones(2, 3)), before)


def test_basic_dynamic_dimensions(dynamic_add: runtime.Executable) -> None:
    for rows in (1, 2, 3):
        x = torch.rand(rows, 2)
        assert torch.equal(dynamic_add(x, x), x + x)
    with pytest.raises(runtime.SignatureError, match=r"argument a: dimension 0 .* is 4, .* 1\.\.3"):
        dynamic_add(torch.ones(4, 2), torch.ones(4, 2))


def test_named_dimensions_must_be_equal() -> None:
    window = aot.NamedDimension("window", 3, 5, 7)
    square = aot.compile(lambda x: x @ x, args=[aot.InputInfo((1, window, window), FLOAT)])
    for size in (3, 4, 5, 7):
        x = torch.rand(1, size, size)
        torch.testing.assert_close(square(x), x @ x)
    with pytest.raises(runtime.SignatureError, match=r"dimension 2 \('window'\) is 4, but .* is 5"):
        square(torch.ones(1, 5, 4))


def test_scalar_dimension_inputs() -> None:
    def dynamic_reshape(x: torch.Tensor, s: int) -> torch.Tensor:
        return torch.reshape(x, (-1, s))

    compiled_reshape = aot.compile(
        dynamic_reshape,
        args=[
            aot.InputInfo(shape=(3, (2, 4, 6)), dtype=FLOAT),
            aot.DimensionInputInfo(value_bounds=(1, 2, 4)),
        ],
    )
    assert compiled_reshape(torch.ones(3, 4), 2).shape == (6, 2)  # a Python int is the size
    for columns, size in ((2, 1), (2, 3), (4, 4), (6, 2)):
        x = torch.rand(3, columns)
        assert torch.equal(compiled_reshape(x, size), x.reshape(-1, size))
    with pytest.raises(runtime.SignatureError, match=r"argument s .* is 5, .* range 1\.\.4"):
        compiled_reshape(torch.ones(3, 4), 5)


@pytest.mark.parametrize("level", [0, 1, 4, 5])
def test_optimization_levels(level: int) -> None:
    info = aot.InputInfo((2,), FLOAT)
    executable = aot.compile(add, level, args=[info, info])
    assert executable(torch.ones(2), torch.ones(2)).tolist() == [2, 2]


def test_timing_cache(tmp_path: Path) -> None:
    """TensorRT's; the other targets measure nothing, and say so when asked by argument."""
    info, path = aot.InputInfo((2,), FLOAT), tmp_path / "timings"
    with aot.config.using(timing_cache_file_path=path):
        aot.compile(add, args=[info, info])
    with pytest.warns(UserWarning, match="keeps no timings"):
        aot.compile(add, args=[info, info], timing_cache_file_path=path)


def test_side_effects_are_refused() -> None:
    seen = []

    def impure(x: torch.Tensor) -> torch.Tensor:
        seen.append(1)
        return x * 2

    with pytest.raises(aot.ExportError, match="changes closure variable 'seen'"):
        aot.compile(impure, args=[aot.InputInfo((2,), FLOAT)])


def test_other_results_are_refused() -> None:
    with pytest.raises(aot.ExportError, match=r"returns tensors, but result\[1\] is 3"):
        aot.compile(lambda x: (x * 2, 3), args=[aot.InputInfo((2,), FLOAT)])


def test_collections_of_tensors_are_constants() -> None:
    def weighted(x: torch.Tensor, weights: list[torch.Tensor]) -> torch.Tensor:
        return sum(x * weight for weight in weights)

    executable = aot.compile(
        weighted, args=[aot.InputInfo((2,), FLOAT), [torch.ones(2), torch.ones(2)]]
    )
    assert list(inspect.signature(executable).parameters) == ["x"]
    assert executable(torch.ones(2)).tolist() == [2, 2]


def test_variadic_arguments_are_frozen() -> None:
    def total(*parts: torch.Tensor, **named: torch.Tensor) -> torch.Tensor:
        return sum((*parts, *named.values()))

    info = aot.InputInfo((2,), FLOAT)
    executable = aot.compile(total, args=[info, torch.ones(2), info], kwargs={"z": info, "c": 1.0})
    one = torch.ones(2)
    assert executable(one, one, z=one).tolist() == [5, 5]
    with pytest.raises(runtime.SignatureError, match="parts"):
        executable(one, one, one, z=one)
