"""The module to raise: its globals and their first values, entry points, external parameters."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.raising.fx.source import Global, ModuleSource, parameter_table, symbol_of
from pelton.aot.spec.errors import ExportError, UnsupportedOpError
from pelton.runtime.errors import ParameterError
from tests.aot.raising.texts import source_of


def only(text: str, **given: object) -> tuple[ModuleSource, Global]:
    source = source_of(text, **given)
    (item,) = source.globals.values()
    return source, item


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "storage", "values"),
    [
        ("@a = dense<[1.0, 2.0]> : tensor<2xf32>", (2,), torch.float32, torch.float32, [1.0, 2.0]),
        ("@a = dense<3> : tensor<2xi8>", (2,), torch.int8, torch.int8, [3, 3]),
        ("@a = dense<> : tensor<0x2xf16>", (0, 2), torch.float16, torch.float16, []),
        ("@a = 5 : i64", (), torch.int64, torch.int64, 5),
        ("@a = 5 : index", (), torch.int64, torch.int64, 5),
        ("@a = 2.5 : f32", (), torch.float32, torch.float32, 2.5),
        ("@a : i32", (), torch.int32, torch.int32, 0),
        ("@a : tensor<2xi32>", (2,), torch.int32, torch.int32, [0, 0]),
        ("@a = #util.uninitialized : tensor<1xf32>", (1,), torch.float32, torch.float32, [0.0]),
        (
            '@a {pelton.dtype = "bool"} = dense<[1, 0]> : tensor<2xi8>',
            (2,), torch.bool, torch.int8, [1, 0],
        ),
        (
            '@a {pelton.dtype = "uint8"} = dense<[-1, 1]> : tensor<2xi8>',
            (2,), torch.uint8, torch.uint8, [255, 1],
        ),
    ],
)  # fmt: skip
def test_a_global_has_its_type_and_first_value(
    text: str, shape: tuple[int, ...], dtype: torch.dtype, storage: torch.dtype, values: object
) -> None:
    source, item = only(f"util.global private {text}")
    assert (item.shape, item.dtype, item.storage) == (shape, dtype, storage)
    first = source.initial(item)
    assert first.dtype == storage
    assert torch.equal(first, torch.tensor(values, dtype=storage).reshape(shape))


@pytest.mark.parametrize("type_", ["i3", "!util.buffer", "tensor<?xf32>", "tensor<2xi3>"])
def test_a_global_that_torch_lacks_is_refused_by_name(type_: str) -> None:
    with pytest.raises(UnsupportedOpError, match="global weight is of type"):
        source_of(f"util.global private @weight : {type_}")


def test_the_first_value_is_read_once_and_can_be_replaced() -> None:
    source, item = only("util.global private mutable @a = dense<1.0> : tensor<2xf32>")
    assert source.initial(item) is source.initial(item)
    source.initialize(item, torch.tensor([3.0, 4.0], dtype=torch.float64))
    assert source.initial(item).dtype is torch.float32
    assert source.initial(item).tolist() == [3, 4]


def test_state_has_the_names_of_users_and_only_the_mutable_globals() -> None:
    source = source_of("""
    util.global private mutable @__auto.cache.keys = dense<0.0> : tensor<1xf32>
    util.global private @__auto.weight = dense<0.0> : tensor<1xf32>
    util.global private mutable @count = 0 : index
    """)
    assert {name: item.symbol for name, item in source.state().items()} == {
        "cache.keys": "__auto.cache.keys", "count": "count",
    }  # fmt: skip
    assert source.globals["count"].is_number
    assert source.globals["__auto.weight"].name == "weight"


def test_the_second_of_two_mutable_globals_of_one_name_is_called_by_its_symbol() -> None:
    source = source_of("""
    util.global private mutable @__auto.x = 1 : i64
    util.global private mutable @_x.global = 2 : i64
    """)
    first = {name: source.initial(item).item() for name, item in source.state().items()}
    assert first == {"x": 1, "_x.global": 2}


def test_public_functions_are_entry_points_and_accessors_of_state_are_not() -> None:
    source = source_of("""
    func.func @one() { return }
    util.func public @two() { util.return }
    func.func private @inner() { return }
    func.func @pelton.state.get.x() { return }
    func.func @pelton.state.set.x() { return }
    """)
    assert source.entry_points() == ["one", "two"]
    assert symbol_of(source.function("inner")) == "inner"


def test_a_function_that_is_not_there_is_told_with_those_that_are() -> None:
    source = source_of("func.func @one() { return } func.func @two() { return }")
    with pytest.raises(ExportError, match="the module has no function 'three'; it has one, two"):
        source.function("three")


EXTERNAL = 'util.global private @w = #flow.parameter.named<"model"::"fc.weight"> : tensor<2xi16>'


def test_an_external_parameter_is_read_from_what_was_given() -> None:
    source, item = only(
        EXTERNAL, parameters={"model": {"fc.weight": torch.tensor([1, -2]).short()}}
    )
    assert item.external == ("model", "fc.weight")
    source.check_parameters([item])
    assert source.initial(item).tolist() == [1, -2]


def test_external_parameters_that_are_missing_or_do_not_fit_are_told() -> None:
    source, item = only(EXTERNAL)
    with pytest.raises(ParameterError, match=r"fc\.weight"):
        source.check_parameters([item])
    source, item = only(EXTERNAL, parameters={"model": {"fc.weight": torch.zeros(3)}})
    with pytest.raises(ParameterError, match=r"fc\.weight"):
        source.check_parameters([item])


def test_the_table_of_parameters_has_what_archives_must_hold() -> None:
    source = source_of(f"""
    {EXTERNAL}
    util.global private @v = #flow.parameter.named<"b"::""> : tensor<f32>
    util.global private @inline = dense<0.0> : tensor<1xf32>
    """)
    table = parameter_table(source.globals.values())
    assert {scope: [*rows] for scope, rows in table.items()} == {"model": ["fc.weight"], "b": [""]}
    row, shape = table["model"]["fc.weight"]
    assert (row.name, shape) == ("int16", (2,))


def test_initializers_are_kept_in_order() -> None:
    source = source_of("""
    util.global private mutable @a : i64
    util.initializer { %c = arith.constant 1 : i64 util.global.store %c, @a : i64 util.return }
    util.initializer { util.return }
    """)
    assert [len([*op.regions[0].blocks[0].operations]) for op in source.initializers] == [3, 1]
