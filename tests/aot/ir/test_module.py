"""MLIR modules: files, signatures, external parameters, devices and the walk of operations."""

from __future__ import annotations

from pathlib import Path

import pytest
from iree.compiler.ir import Context, Module, Operation

from pelton import aot
from pelton.aot.ir.module import (
    device_count,
    has_dynamic_convolutions,
    has_dynamic_sizes,
    has_empty_sizes,
    is_lowered,
    module_name,
    new_module,
    operations_within,
    parameters_of,
    read_module,
    run_passes,
    set_signature,
    signatures_of,
    write_module,
)
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import Signature


def parse(text: str) -> Operation:
    context = Context()
    context.load_all_available_dialects()
    return Module.parse(text, context).operation


FUNCTION = parse("""
    module @net {
      func.func @f(%x: tensor<2xf32>, %c: i1) -> tensor<2xf32> {
        %r = scf.if %c -> tensor<2xf32> {
          %a = arith.addf %x, %x : tensor<2xf32>
          scf.yield %a : tensor<2xf32>
        } else {
          scf.yield %x : tensor<2xf32>
        }
        return %r : tensor<2xf32>
      }
    }""")


# The walk


def test_operations_are_returned_inner_first_and_the_operation_last() -> None:
    names = [op.name for op in operations_within(FUNCTION)]
    assert names == [
        "arith.addf", "scf.yield", "scf.yield", "scf.if", "func.return", "func.func",
        "builtin.module",
    ]  # fmt: skip


def test_operations_are_chosen_by_name() -> None:
    found = operations_within(FUNCTION, "scf.yield", "arith.addf")
    assert [op.name for op in found] == ["arith.addf", "scf.yield", "scf.yield"]
    assert operations_within(FUNCTION, "scf.for") == []
    (function,) = operations_within(FUNCTION, "func.func")
    assert operations_within(function, "func.func") == [function]


# Names and phases


def test_names_of_modules() -> None:
    assert module_name(FUNCTION) == "net"
    assert module_name(parse("module {}")) == "module"
    assert module_name(new_module("my net")) == "my net"


def test_a_module_with_functions_of_another_dialect_is_lowered() -> None:
    assert not is_lowered(FUNCTION)
    assert is_lowered(parse("util.func public @f() { util.return }"))


# Dynamic sizes


@pytest.mark.parametrize(
    "type_, dynamic",
    [("tensor<2xf32>", False), ("tensor<?xf32>", True), ("!torch.vtensor<[?],f32>", True),
     ("!torch.vtensor<[0],f32>", False), ("i64", False)],
)  # fmt: skip
def test_dynamic_sizes_of_arguments(type_: str, dynamic: bool) -> None:
    assert has_dynamic_sizes(parse(f"func.func private @g({type_})")) is False
    module = parse(f"func.func @f(%x: {type_}) {{ return }}")
    assert has_dynamic_sizes(module) is dynamic


@pytest.mark.parametrize("least, empty", [(0, True), (1, False), (2, False)])
def test_sizes_that_may_be_zero_are_found(least: int, empty: bool) -> None:
    module = parse(f"""
        func.func @f() {{
          %0 = torch.symbolic_int "n" {{min_val = 3, max_val = 9}} : !torch.int
          %1 = torch.symbolic_int "m" {{min_val = {least}, max_val = 9}} : !torch.int
          return
        }}""")
    assert has_empty_sizes(module) is empty


def test_dynamic_sizes_of_results_are_found() -> None:
    module = parse("""
        func.func @f(%x: tensor<2xf32>) {
          %0 = tensor.cast %x : tensor<2xf32> to tensor<?xf32>
          return
        }""")
    assert has_dynamic_sizes(module)


@pytest.mark.parametrize(
    "sizes, dynamic",
    [("1,3,8,8", False), ("?,3,8,8", False), ("1,?,8,8", False), ("1,3,?,8", True),
     ("1,3,8,?", True), ("3,?,?", False), ("?,3,8", False)],
)  # fmt: skip
def test_convolutions_of_dynamic_width_or_height(sizes: str, dynamic: bool) -> None:
    image = f"!torch.vtensor<[{sizes}],f32>"
    module = parse(f"""
        func.func @f(%x: {image}, %w: {image}, %b: !torch.none, %l: !torch.list<int>) {{
          %one = torch.constant.int 1
          %0 = torch.aten.conv2d %x, %w, %b, %l, %l, %l, %one
            : {image}, {image}, !torch.none, !torch.list<int>, !torch.list<int>, !torch.list<int>,
              !torch.int -> {image}
          return
        }}""")
    assert has_dynamic_convolutions(module) is dynamic


def test_other_operators_of_dynamic_images_are_no_convolutions() -> None:
    image = "!torch.vtensor<[1,3,?,?],f32>"
    module = parse(f"""
        func.func @f(%x: {image}) {{
          %0 = torch.aten.relu %x : {image} -> {image}
          return
        }}""")
    assert not has_dynamic_convolutions(module)


# External parameters


def external(name: str, type_: str, extra: str = "") -> str:
    reference = f"#flow.parameter.named<{name}>"
    return f"util.global private @g {{a = 1 : i64{extra}}} = {reference} : {type_}"


@pytest.mark.parametrize(
    "name, type_, extra, expected",
    [
        ('"model"::"w"', "tensor<2x3xf32>", "", ("model", "w", "float32", (2, 3))),
        ('"w"', "tensor<f64>", "", ("", "w", "float64", ())),
        ('"s"::"a.b:c d"', "tensor<0x1xi64>", "", ("s", "a.b:c d", "int64", (0, 1))),
        ('"s"::"c"', "tensor<complex<f32>>", "", ("s", "c", "complex64", ())),
        ('"s"::"c"', "tensor<4x5xcomplex<f64>>", "", ("s", "c", "complex128", (4, 5))),
        ('"s"::"x"', "tensor<2xi8>", ', pelton.dtype = "bool"', ("s", "x", "bool", (2,))),
        ('"s"::"x"', "tensor<2xi8>", ', pelton.dtype = "uint8"', ("s", "x", "uint8", (2,))),
        ('"s"::"x"', "tensor<2xf8E4M3FN>", "", ("s", "x", "float8_e4m3fn", (2,))),
    ],
)
def test_external_parameters(name: str, type_: str, extra: str, expected: tuple) -> None:
    scope, key, dtype, shape = expected
    table = parameters_of(parse(external(name, type_, extra)))
    assert table == {scope: {key: (DTYPES[dtype], shape)}}


def test_other_globals_are_no_parameters() -> None:
    module = parse("""
        util.global private @a : tensor<2xf32>
        util.global private mutable @b = dense<0.0> : tensor<2xf32>
        util.global private @c = 3 : i64""")
    assert parameters_of(module) == {}


@pytest.mark.parametrize("type_", ["tensor<?xf32>", "tensor<2x?xf32>"])
def test_a_parameter_of_dynamic_shape_is_refused(type_: str) -> None:
    with pytest.raises(ValueError, match="external parameter 'w' has no static type"):
        parameters_of(parse(external('"model"::"w"', type_)))


# Signatures and devices


def test_a_signature_is_read_as_it_was_set() -> None:
    module = parse("func.func @f() { return }\nfunc.func private @g()")
    signature = Signature("f", mutates=("count",))
    set_signature(module.regions[0].blocks[0].operations[0].operation, signature)
    assert signatures_of(module) == {"f": signature}


@pytest.mark.parametrize(
    "argument, function, count",
    [
        ("", "", 0),
        ("{iree.abi.affinity = #hal.device.promise<@__device_0>}", "", 1),
        ("{iree.abi.affinity = #hal.device.promise<@__device_12>}", "", 13),
        ("", "attributes {stream.affinity = #hal.device.promise<@__device_2>}", 3),
        ("", "attributes {pelton.note = #hal.device.promise<@__device_3>}", 0),
    ],
)
def test_devices_are_counted_by_the_largest_ordinal(
    argument: str, function: str, count: int
) -> None:
    module = parse(f"func.func @f(%x: tensor<2xf32> {argument}) {function} {{ return }}")
    assert device_count(module) == count


# Passes


def test_passes_change_the_module() -> None:
    module = parse("func.func @f() { %0 = arith.constant 1 : i64\n return }")
    run_passes(module, "builtin.module(func.func(canonicalize))")
    assert operations_within(module, "arith.constant") == []


@pytest.mark.parametrize("pipeline", ["no pipeline", "builtin.module(no-such-pass)"])
def test_a_text_that_is_no_pipeline_is_refused(pipeline: str) -> None:
    with pytest.raises(aot.ExportError, match=f"the passes '.*{pipeline[-6:-1]}.*' failed"):
        run_passes(parse("module {}"), pipeline)


# Files


@pytest.mark.parametrize("name", ["net.mlir", "net.mlirbc"])
def test_modules_are_read_as_they_were_written(name: str, tmp_path: Path) -> None:
    write_module(FUNCTION, tmp_path / name)
    assert str(read_module(tmp_path / name)) == str(FUNCTION)


def test_a_file_that_is_no_module_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.mlir").write_bytes(b"GGUF" + bytes(64))
    with pytest.raises(aot.ArtifactError, match=r"a.mlir is no MLIR module: its content is"):
        read_module(tmp_path / "a.mlir")


@pytest.mark.parametrize(
    "text, reason",
    [
        ("func.func @f() {", "1:15.*expected operation name"),
        (
            'func.func @f() attributes {iree.reflection = {pelton.signature = "{"}} { return }',
            "signature",
        ),
        (external('"model"::"w"', "tensor<?xf32>"), "has no static type"),
        (external('"model"::"w"', "tensor<2xi3>"), "si3|i3"),
    ],
)
def test_damaged_text_is_refused_with_the_reason(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "net.mlir"
    path.write_text(text)
    with pytest.raises(aot.ArtifactError, match=reason):
        read_module(path)
