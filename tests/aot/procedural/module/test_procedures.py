"""Procedures calling each other, modules and programs, and using the rest of their class."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from pelton import aot, runtime
from tests.programs import assert_same, check_ir, through_files

NET = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).requires_grad_(False).eval()


TREE = {"a": aot.AbstractTensor(2), "b": [aot.AbstractI64, 7]}


class Both(NamedTuple):
    first: Any
    second: Any


class Dictionary(nn.Module):
    def forward(self, x: torch.Tensor, *, options: dict[str, torch.Tensor]) -> Any:
        return {"sum": x + options["y"], "pair": [x * 2, options["y"]]}


def program(module: nn.Module, *args: Any, **kwargs: Any) -> torch.export.ExportedProgram:
    return torch.export.export(module, args, kwargs)


class Mixin:
    def from_mixin(self, x=aot.AbstractTensor(2)):
        return self.double(x) + 1


class Base(aot.CompiledModule):
    scale = 3.0
    state = aot.export_global(aot.AbstractTensor(2), mutable=True)

    def shared(self, x=aot.AbstractTensor(2)):
        return x * self.scale

    def overridden(self, x=aot.AbstractTensor(2)):
        return x + 1


class Derived(Base, Mixin, export_name="derived"):
    net = NET
    listed = program(nn.Linear(4, 2).requires_grad_(False), torch.zeros(3, 4))
    _mapped = program(Dictionary(), torch.zeros(2), options={"y": torch.zeros(2)})

    def early(self, x=aot.AbstractTensor(2)):
        return self.late(x, power=2)

    def late(self, x=aot.AbstractTensor(2), power=1, *, offset=0.5):
        self.state = x
        return Both(x**power + offset, {"none": None, "list": [x]})

    def overridden(self, x=aot.AbstractTensor(2)):
        return super().overridden(x) * self.helped(x)[0]

    def calls_net(self, x=aot.AbstractTensor(None, 4)):
        return self.net(x), self.net[0](x), self.listed_rows(x[:3])

    def listed_rows(self, x=aot.AbstractTensor(None, 4)):
        return self.listed(x)

    def calls_program(self, x=aot.AbstractTensor(2)):
        return self._mapped(x, options={"y": x + 1})

    def trees(self, tree=TREE):
        return self.summed(tree), isinstance(self, Derived)

    def summed(self, tree=TREE):
        return tree["a"] * tree["b"][0] + tree["b"][1] + self._helper(self.two)

    @property
    def two(self):
        return 2 * self.one()

    @classmethod
    def one(cls):
        return len(cls.__name__) - 6

    @staticmethod
    def helped(x):
        return [x * 10]

    @staticmethod
    def double(x):
        return x * 2

    def _helper(self, n):
        return n + self.scale


@pytest.fixture(scope="module")
def derived(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    return through_files(aot.export(Derived), tmp_path_factory.mktemp("derived"))


X = torch.tensor([1.0, 2.0])


def test_methods_without_underscore_are_the_entry_points(derived: runtime.Executable) -> None:
    own = ["early", "late", "overridden", "calls_net", "listed_rows", "calls_program", "trees"]
    assert set(derived.functions) == {
        *own, "summed", "shared", "from_mixin", "listed",
    }  # fmt: skip


def test_a_procedure_may_call_one_below_it_with_other_constants(
    derived: runtime.Executable,
) -> None:
    assert_same(derived.early(X), Both(X**2 + 0.5, {"none": None, "list": [X]}))
    assert_same(derived.late(X), Both(X + 0.5, {"none": None, "list": [X]}))
    assert derived.functions["early"].signature.mutates == ("state",)


def test_inheritance_super_mixins_and_helpers(derived: runtime.Executable) -> None:
    assert_same(derived.shared(X), X * 3)
    assert_same(derived.overridden(X), (X + 1) * X * 10)
    assert_same(derived.from_mixin(X), X * 2 + 1)


def test_modules_and_programs_are_called_naturally(derived: runtime.Executable) -> None:
    x = torch.randn(5, 4)
    whole, first, listed = derived.calls_net(x)
    assert_same((whole, first), (NET(x), NET[0](x)))
    assert_same(listed, Derived.listed.module()(x[:3]))
    assert_same(derived.listed(x[:3]), listed)
    expected = {"sum": X + X + 1, "pair": [X * 2, X + 1]}
    assert_same(derived.calls_program(X), expected)


def test_trees_constants_and_properties(derived: runtime.Executable) -> None:
    tree = {"a": X, "b": [2, 7]}
    assert_same(derived.trees(tree), (X * 2 + 7 + 5, True))
    with pytest.raises(aot.SignatureError, match="fixed to 7"):
        derived.trees({"a": X, "b": [2, 8]})


def test_the_signature_has_names_defaults_dimensions_and_lines(
    derived: runtime.Executable,
) -> None:
    late = derived.functions["late"].signature
    assert str(late.python()) == "(x, power=1, *, offset=0.5)"
    assert str(derived.functions["calls_net"].signature).startswith(
        "calls_net(x: float32[x_dim0, 4]) -> (float32[x_dim0, 4], float32[x_dim0, 4], float32["
    )
    assert "test_procedures.py:" in late.location


def test_named_dimensions_have_bounds_and_are_equal(tmp_path: Path) -> None:
    n = aot.NamedDimension("n", 2, 3, 4)

    class Named(aot.CompiledModule):
        def f(self, x=aot.AbstractTensor(n, 2), y=aot.AbstractTensor(n)):
            return x + y[:, None]

    exe = through_files(aot.export(Named), tmp_path)
    x, y = torch.randn(3, 2), torch.randn(3)
    assert_same(exe.f(x, y), x + y[:, None])
    with pytest.raises(aot.SignatureError, match=r"range 2\.\.4"):
        exe.f(torch.randn(5, 2), torch.randn(5))
    with pytest.raises(aot.SignatureError, match="must be equal"):
        exe.f(x, torch.randn(2))


def test_specs_of_inputs_are_types_of_arguments_too(tmp_path: Path) -> None:
    rows = aot.NamedDimension("rows", 1, 3, 4)

    matrix = aot.InputInfo((rows, (1, 2, 5)), torch.float32)
    vector = aot.InputInfo((rows,), torch.int64)

    class Specified(aot.CompiledModule):
        def f(self, pair=(matrix, vector), count=aot.DimensionInputInfo((1, 2, 8))):
            ones = aot.IREE.tensor_splat(count, value=1.0, dtype=torch.float32)
            return pair[0] + pair[1][:, None], ones

        def g(self, count=aot.AbstractIndex, x=aot.AbstractTensor(2, 2)):
            return self.f((x, aot.IREE.tensor_splat(2, value=3, dtype=torch.int64)), count)

    exe = through_files(aot.export(Specified), tmp_path)
    dims = {dim.name: (dim.min, dim.opt, dim.max) for dim in exe.functions["f"].signature.dims}
    assert dims == {"rows": (1, 3, 4), "pair[0]_dim1": (1, 2, 5), "count": (1, 2, 8)}
    for size, columns, count in ((1, 1, 1), (3, 2, 2), (4, 5, 8)):
        x, y = torch.randn(size, columns), torch.arange(size)
        assert_same(exe.f((x, y), count), (x + y[:, None], torch.ones(count)))
    x = torch.randn(2, 2)
    assert_same(exe.g(8, x), (x + 3, torch.ones(8)))
    with pytest.raises(aot.SignatureError, match=r"count.*1\.\.8"):
        exe.f((x, torch.arange(2)), 9)
    with pytest.raises(aot.PeltonError, match=r"argument count of f\(\) must be at most 8"):
        exe.g(9, x)


def test_calls_are_calls_in_the_ir() -> None:
    check_ir(
        aot.export(Derived),
        """
        CHECK: func.func @early
        CHECK: call @late$1(%arg0) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
        CHECK: func.func @late(
        CHECK: func.func @overridden
        CHECK: func.func @summed
        CHECK: func.func @shared
        CHECK: func.func private @late$1
        """,
    )


def test_every_operation_has_the_users_own_line() -> None:
    class Lines(aot.CompiledModule):
        def f(self, i=aot.AbstractI64, x=aot.AbstractTensor(4)):
            j = i + 1
            k = j * 2
            return k, x[1:3]

    module = aot.export(Lines).mlir_module
    first = Lines.f.__code__.co_firstlineno
    text = module.get_asm(enable_debug_info=True, use_local_scope=True)
    for operation, offset in (("arith.addi", 1), ("arith.muli", 2), ("flow.tensor.slice", 3)):
        line = next(line for line in text.splitlines() if operation in line)
        assert f'test_procedures.py":{first + offset}:' in line


def test_argument_devices_are_stated() -> None:
    class Placed(aot.CompiledModule):
        @aot.CompiledModule.signature_info(arg_device={1: aot.DeviceAffinity(2)})
        def f(self, x=aot.AbstractTensor(2), y=aot.AbstractTensor(2)):
            return x + y

    check_ir(
        aot.export(Placed),
        "CHECK: %arg1: tensor<2xf32> {iree.abi.affinity = #hal.device.promise<@__device_2>}",
    )
