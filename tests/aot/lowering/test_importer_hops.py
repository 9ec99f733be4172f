"""`torch.cond`, `while_loop`, `scan` and `map` give what eager gives, in all forms of an export."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan

from pelton import aot, runtime
from tests.programs import assert_same

X = torch.tensor([[1.0, -2.0, 3.0, 0.5], [0.0, 4.0, -1.0, 2.0], [1.5, 1.0, 1.0, -3.0]])
LONG = torch.arange(28.0).reshape(7, 4)


def _branches(x):
    return torch.cond(x.sum() > 0, lambda x: (x + 1, x.sum()), lambda x: (x - 1, x.mean()), (x,))


def _nested(x):
    def inner(x):
        return torch.cond(x.amax() > 3.5, lambda x: x * 3, lambda x: x * 5, (x,))

    return torch.cond(x.sum() > 0, inner, lambda x: x - 1, (x,))


def _branch_on_size(x):
    return torch.cond(x.shape[0] > 4, lambda x: x + 1, lambda x: x - 1, (x,))


def _loop_with_captures(x):
    limit = x.abs().amax(1).sum()

    def below(number, x):
        return number < limit

    return torch.while_loop(below, lambda n, x: (n + 1, x * 0.5 + limit), (torch.tensor(0), x))


def _step(state, x):
    return state * 0.5 + x, state * x


def _scan(x):
    return scan(_step, torch.zeros(4), x)


def _scan_back(x):
    return scan(_step, torch.zeros(4), x, reverse=True)


def _map(x):
    return torch_map(lambda row, other: (row + other).cumsum(0), x, x.sum(0))


PROGRAMS = (_branches, _nested, _branch_on_size, _loop_with_captures, _scan, _scan_back, _map)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__.strip("_"))
def test_results_are_those_of_eager_at_several_sizes(program, tmp_path: Path):
    output = aot.export(program, args=(X,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    output.compile(tmp_path / "program.vmfb")
    executable = runtime.load(tmp_path / "program.vmfb")
    raised = next(iter(aot.to_torch(output).functions.values()))
    for x in (X, -X, LONG):
        assert_same(executable(x), program(x))
        assert_same(raised(x), program(x))


@pytest.mark.parametrize("program", [_branches, _scan], ids=["cond", "scan"])
def test_onnx_has_branches_and_loops(program, tmp_path: Path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    output = aot.export(program, args=(X,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    session = onnxruntime.InferenceSession(str(output.to_onnx(tmp_path / "program.onnx").path))
    for x in (X, -X, LONG):
        (name,) = (port.name for port in session.get_inputs())
        values = [torch.from_numpy(np.array(v)) for v in session.run(None, {name: x.numpy()})]
        assert_same(tuple(values), program(x))


def test_branches_of_two_programs_are_kept_apart():
    class Two(aot.CompiledModule):
        def up(self, x=aot.AbstractTensor(3, 4)):
            return self.rise(x)

        def down(self, x=aot.AbstractTensor(3, 4)):
            return self.fall(x)

        @aot.jittable
        def rise(x):
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x + 2, (x,))

        @aot.jittable
        def fall(x):
            return torch.cond(x.sum() > 0, lambda x: x - 1, lambda x: x - 2, (x,))

    executable = runtime.load(bytes(aot.export(Two).compile().map_memory()))
    assert_same(executable.up(X), X + 1)
    assert_same(executable.up(-X), -X + 2)
    assert_same(executable.down(X), X - 1)
    assert_same(executable.down(-X), -X - 2)


def test_a_module_keeps_its_weights_in_branches():
    class Experts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(4, 2), torch.nn.Linear(4, 2)

        def forward(self, x):
            return torch.cond(x.sum() > 0, self.first.forward, self.second.forward, (x,))

    model = Experts().eval().requires_grad_(False)
    executable = runtime.load(bytes(aot.export(model, args=(X,)).compile().map_memory()))
    assert_same(executable(X), model(X))
    assert_same(executable(-X), model(-X))


def test_a_scatter_within_a_branch_spares_the_caller():
    index, values = torch.tensor([2, 0]), torch.ones(2, 4)

    def program(x, index, values):
        put = lambda x, i, v: x.index_put((i,), v)  # noqa: E731
        return torch.cond(values.sum() > 0, put, lambda x, i, v: x + 1, (x, index, values))

    output = aot.export(program, args=(X, index, values))
    executable = runtime.load(bytes(output.compile().map_memory()))
    given = X.clone()
    assert_same(executable(given, index, values), program(X, index, values))
    assert_same(given, X)


def test_none_among_results_stays_none():
    output = aot.export(lambda x: (x + 1, None, {"a": None, "b": x}), args=(X,))
    executable = runtime.load(bytes(output.compile().map_memory()))
    first, nothing, mapping = executable(X)
    assert nothing is None
    assert mapping["a"] is None
    assert_same((first, mapping["b"]), (X + 1, X))


def test_a_stack_of_results_of_unknown_size_is_refused():
    def program(x):
        return torch_map(lambda row: torch.cat([row, row]), x.T)

    with pytest.raises(aot.UnsupportedOpError, match="none of its inputs has"):
        aot.export(program, args=(X,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
