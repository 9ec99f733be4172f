"""Globals of a module: what they are in the IR, and what procedures read from and store to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot, runtime
from tests.programs import assert_same, check_ir, through_files

NET = nn.Linear(3, 2)
NET.requires_grad_(False)
TIED = torch.arange(4.0)


class Holder(aot.CompiledModule):
    params = aot.export_parameters(NET)
    cache = aot.export_global(aot.AbstractTensor(2, 4), mutable=True)
    scratch = aot.export_global(aot.AbstractTensor(2), mutable=True, uninitialized=True)
    mask = aot.export_global(torch.tensor([True, False, True]), mutable=True)
    half = aot.export_global(aot.AbstractTensor(2, dtype=torch.bfloat16), mutable=True)
    count = aot.export_global(3, mutable=True)
    rate = aot.export_global(0.5, mutable=True)
    flag = aot.export_global(aot.AbstractBool, mutable=True)
    tree = aot.export_global_tree({"a": torch.zeros(2), "b": [torch.ones(3), 4]}, mutable=True)
    tied = aot.export_global_tree([TIED, TIED])

    def read_parameters(self):
        return dict(self.params.items())

    def store_column(self, x=aot.AbstractTensor(2), at=aot.AbstractIndex):
        self.cache[:, at] = x

    def store_bools(self, x=aot.AbstractTensor(3, dtype=torch.bool)):
        self.mask = x
        self.mask[1] = True
        return self.mask

    def store_half(self, x=aot.AbstractTensor(2, dtype=torch.bfloat16)):
        self.half = x
        return self.half

    def store_numbers(self, n=aot.AbstractI64, x=aot.AbstractF32):
        self.count += n
        self.rate = x
        self.flag = self.count > 4
        return self.count, self.rate, self.flag

    def store_tree(self, x=aot.AbstractTensor(2)):
        self.tree["a"] = x
        self.tree = {"b": (self.tree["b"][0] * 2, 7), "a": self.tree["a"] + 1}
        return self.tree

    def store_scratch(self, x=aot.AbstractTensor(2)):
        self.scratch = x
        return self.scratch

    def read_tied(self):
        return self.tied


@pytest.fixture(scope="module")
def holder(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    return through_files(aot.export(Holder), tmp_path_factory.mktemp("globals"))


def test_globals_stand_before_functions_under_their_names() -> None:
    check_ir(
        aot.export(Holder),
        """
        CHECK: module @holder
        CHECK: util.global private @_params.weight = dense_resource<torch_tensor_2_3_torch.float32>
        CHECK: util.global private @_params.bias = dense_resource<torch_tensor_2_torch.float32>
        CHECK: util.global private mutable @_cache.global = dense<0.000000e+00> : tensor<2x4xf32>
        CHECK: util.global private mutable @_scratch.global = #util.uninitialized : tensor<2xf32>
        CHECK: util.global private mutable @_mask.global {pelton.dtype = "bool"}{{.*}}tensor<3xi8>
        CHECK: util.global private mutable @_count.global = 3 : i64
        CHECK: util.global private mutable @_rate.global = 5.000000e-01 : f32
        CHECK: util.global private mutable @_flag.global = false
        CHECK: util.global private mutable @_tree.a
        CHECK: util.global private mutable @_tree.b.0
        CHECK: util.global private mutable @_tree.b.1 = 4 : i64
        CHECK: util.global private @_tied.0
        CHECK-NOT: @_tied.1
        CHECK: func.func @read_parameters
        CHECK: %_params.weight = util.global.load @_params.weight
        """,
    )


def test_parameters_are_a_dict_by_name(holder: runtime.Executable) -> None:
    assert_same(holder.read_parameters(), {"weight": NET.weight, "bias": NET.bias})


def test_a_column_at_a_dynamic_place_is_stored(holder: runtime.Executable) -> None:
    holder.reset_state()
    holder.store_column(torch.tensor([1.0, 2.0]), 2)
    expected = torch.zeros(2, 4)
    expected[:, 2] = torch.tensor([1.0, 2.0])
    assert_same(holder.state["cache"], expected)


def test_bools_and_narrow_floats_keep_their_types(holder: runtime.Executable) -> None:
    holder.reset_state()
    stored = holder.store_bools(torch.tensor([False, False, True]))
    assert_same(stored, torch.tensor([False, True, True]))
    assert_same(holder.state["mask"], torch.tensor([False, True, True]))
    half = torch.tensor([1.5, -2.0], dtype=torch.bfloat16)
    assert_same(holder.store_half(half), half)


def test_numbers_are_stored_and_are_state(holder: runtime.Executable) -> None:
    holder.reset_state()
    assert holder.store_numbers(2, 0.25) == (5, 0.25, True)
    assert holder.state["count"] == 5
    holder.state["count"] = 1
    assert holder.store_numbers(0, 0.25) == (1, 0.25, False)


def test_a_tree_is_stored_whole_and_in_part(holder: runtime.Executable) -> None:
    holder.reset_state()
    expected = {"a": torch.tensor([2.0, 3.0]), "b": [torch.full((3,), 2.0), 7]}
    assert_same(holder.store_tree(torch.tensor([1.0, 2.0])), expected)


def test_uninitialized_and_tied_globals(holder: runtime.Executable) -> None:
    x = torch.tensor([1.0, 2.0])
    assert_same(holder.store_scratch(x), x)
    assert_same(holder.read_tied(), [TIED, TIED])


def test_signatures_name_the_state_that_calls_change(holder: runtime.Executable) -> None:
    mutates = {name: f.signature.mutates for name, f in holder.functions.items()}
    assert mutates["read_parameters"] == ()
    assert mutates["store_numbers"] == ("count", "rate", "flag")
    assert mutates["store_tree"] == ("tree.a", "tree.b.0", "tree.b.1")


class External(aot.CompiledModule):
    params = aot.export_parameters(
        NET, external=True, external_scope="net", name_mapper={"params.weight": "w"}.get
    )
    bias = aot.export_global(aot.AbstractTensor(2), external=True, external_scope="net")

    def run(self, x=aot.AbstractTensor(None, 3)):
        return torch.nn.functional.linear(x, self.params["weight"], self.params["bias"]) + self.bias


def test_external_globals_come_from_archives(tmp_path: Path) -> None:
    out = aot.export(External)
    check_ir(
        out,
        """
        CHECK: @_params.weight = #flow.parameter.named<"net"::"w"> : tensor<2x3xf32>
        CHECK: @_params.bias = #flow.parameter.named<"net"::"params.bias"> : tensor<2xf32>
        CHECK: @_bias.global = #flow.parameter.named<"net"::"bias.global"> : tensor<2xf32>
        """,
    )
    values = {"w": NET.weight, "params.bias": NET.bias, "bias.global": torch.tensor([1.0, 2.0])}
    exe = through_files(out, tmp_path, parameters={"net": values})
    x = torch.randn(4, 3)
    assert_same(exe.run(x), NET(x) + values["bias.global"])


def test_noinline_and_attrs_reach_the_global() -> None:
    class Kept(aot.CompiledModule):
        a = aot.export_global(torch.zeros(2), noinline=True)
        b = aot.export_global(torch.zeros(2), attrs=aot.GlobalAttributes(mutable=True))

        def f(self):
            return self.a

    check_ir(aot.export(Kept), "CHECK: @_a.global {noinline}\nCHECK: mutable @_b.global")


def leaves(declared: aot.export_global_tree) -> list[str]:
    return [name for name, _ in declared.items()]


def test_leaves_are_named_by_their_paths() -> None:
    assert leaves(aot.export_global_tree({"z": [1, (2, 3)], "a": 4})) == [
        "z.0",
        "z.1.0",
        "z.1.1",
        "a",
    ]
    assert leaves(aot.export_global_tree(1.5)) == [""]
    assert leaves(aot.export_global_tree([])) == []


def test_the_options_of_attrs_take_the_place_of_the_others() -> None:
    attrs = aot.GlobalAttributes(noinline=True)
    assert aot.export_global(1, mutable=True, attrs=attrs).attrs is attrs
    made = aot.export_global_tree(
        [], mutable=True, external_scope="s", name_mapper=str.upper, noinline=True
    )
    expected = aot.GlobalAttributes(
        mutable=True, external_scope="s", name_mapper=str.upper, noinline=True
    )
    assert made.attrs == expected
    assert aot.export_parameters(NET, mutable=True, uninitialized=True).attrs == (
        aot.GlobalAttributes(mutable=True, uninitialized=True)
    )


@pytest.mark.parametrize("declare", [aot.export_global, aot.export_global_tree])
def test_options_that_contradict_each_other_have_the_users_line(declare: Any) -> None:
    with pytest.raises(aot.ExportError, match="can only get a value with mutable=True") as caught:
        declare(aot.AbstractTensor(2), uninitialized=True)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


def test_abstractify_keeps_the_structure() -> None:
    declared = aot.export_global_tree({"a": [torch.zeros(2, dtype=torch.int8), True], "b": (1,)})
    assert declared.abstractify() == {
        "a": [aot.AbstractTensor(2, dtype=torch.int8), aot.AbstractBool],
        "b": (aot.AbstractI64,),
    }
    assert aot.export_global(aot.AbstractF64).abstractify() is aot.AbstractF64


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2, bias=False)
        self.second = nn.Linear(2, 2, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("seen", torch.zeros(3))
        self.register_buffer("hidden", torch.zeros(4), persistent=False)


def test_a_tied_parameter_has_all_of_its_names() -> None:
    net = Tied()
    declared = aot.export_parameters(net)
    assert [name for name, _ in declared.items()] == ["first.weight", "second.weight"]
    assert declared["second.weight"] is net.first.weight


def test_buffers_include_those_that_no_state_dict_has() -> None:
    assert list(aot.export_buffers(Tied()).abstractify_tree()) == ["seen", "hidden"]


def test_a_name_that_a_module_lacks_is_told_with_those_it_has() -> None:
    with pytest.raises(KeyError, match=r"no 'gain'; there are: weight, bias"):
        aot.export_parameters(NET)["gain"]


def test_a_module_without_tensors_declares_an_empty_dict() -> None:
    declared = aot.export_buffers(NET)
    assert list(declared.items()) == []
    assert declared.abstractify_tree() == {}


def test_a_tensor_of_an_externalized_module_comes_from_its_archive() -> None:
    net = nn.Linear(2, 2)
    aot.externalize_module_parameters(net, external_scope="net")

    class Held(aot.CompiledModule):
        params = aot.export_parameters(net)
        other = aot.export_parameters(nn.Linear(1, 1), external=True)

        def f(self):
            return self.params["weight"]

    check_ir(
        aot.export(Held),
        """
        CHECK: @_params.weight = #flow.parameter.named<"net"::"weight">
        CHECK: @_params.bias = #flow.parameter.named<"net"::"bias">
        CHECK: @_other.weight = #flow.parameter.named<"model"::"other.weight">
        """,
    )
