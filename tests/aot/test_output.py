"""`ExportOutput`: the IR that it holds, saving it, phases, and compiling it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch
from iree.compiler.api import Output
from torch import nn

from pelton import aot, runtime

from ..programs import assert_same, check_ir

X = torch.randn(2, 3)


FUNCTION = """
CHECK: module @module
CHECK: func.func @main(%[[X:.*]]: !torch.vtensor<[?,3],f32>) -> !torch.vtensor<[?,3],f32>
CHECK: %[[S:.*]] = torch.symbolic_int "s{{[0-9]+}}" {min_val = 1, max_val = 8} : !torch.int
CHECK: torch.bind_symbolic_shape %[[X]], [%[[S]]], affine_map<()[s0] -> (s0, 3)>
CHECK: torch.aten.relu %[[X]]
"""


def test_a_function_imports_as_torch_dialect_with_symbols() -> None:
    batch = aot.NamedDimension("batch", 1, 4, 8)
    out = aot.export(torch.relu, X, dynamic_shapes=({0: batch},))
    check_ir(out, FUNCTION)


EXTERNAL = """
CHECK: module @encoder
CHECK: util.global private @__auto.weight = #flow.parameter.named<"model"::"weight">
CHECK-SAME: : tensor<2x3xf32>
CHECK: util.global private @__auto.bias = #flow.parameter.named<"model"::"bias"> : tensor<2xf32>
CHECK: func.func @encode
CHECK: %[[W:.*]] = util.global.load @__auto.weight : tensor<2x3xf32>
CHECK: torch_c.from_builtin_tensor %[[W]] : tensor<2x3xf32> -> !torch.vtensor<[2,3],f32>
"""


def test_external_parameters_are_named_globals() -> None:
    out = aot.export(
        nn.Linear(3, 2), X, external_parameters=True, module_name="encoder", function_name="encode"
    )
    check_ir(out, EXTERNAL)


STATE = """
CHECK: util.global private mutable @__auto.count
CHECK: func.func @main
CHECK: %[[OLD:.*]] = util.global.load @__auto.count
CHECK: torch.aten.add
CHECK: util.global.store %{{.*}}, @__auto.count
CHECK: func.func @pelton.state.get.count() -> tensor<4xf32>
CHECK: func.func @pelton.state.set.count(%{{.*}}: tensor<4xf32>)
"""


class Count(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(4))

    def forward(self) -> torch.Tensor:
        return self.count.add_(1)


def test_a_changed_buffer_is_a_mutable_global_with_accessors() -> None:
    check_ir(aot.export(Count()), STATE)


def test_a_large_unnamed_constant_is_a_global_and_a_small_one_a_literal() -> None:
    large, small = torch.randn(30, 50), torch.tensor([1.0, 2.0])
    text = str(aot.export(lambda x: x + large.sum() + small[0], torch.zeros(1)).mlir_module)
    assert "@__auto.constant_30_50_torch.float32" in text
    assert "torch.vtensor.literal" in text


def test_tied_parameters_are_one_global() -> None:
    model = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    model[1].weight = model[0].weight
    text = str(aot.export(model, X).mlir_module)
    assert text.count("util.global private") == 1


def test_every_operation_has_the_line_of_the_program() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x.relu()
        return y.tanh()

    text = aot.export(program, X).mlir_module.get_asm(enable_debug_info=True)
    line = program.__code__.co_firstlineno
    assert f'{__file__}":{line + 1}' in text
    assert f'{__file__}":{line + 2}' in text


@pytest.mark.parametrize(
    ("name", "is_bytecode"), [("m.mlirbc", True), ("m.mlir", False), ("m.MLIRBC", False)]
)
def test_the_suffix_decides_between_text_and_bytecode(
    name: str, is_bytecode: bool, tmp_path: Path
) -> None:
    aot.export(nn.Linear(3, 2), X).save_mlir(tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(b"ML\xefR") is is_bytecode


@pytest.mark.parametrize("name", ["m.mlir", "m.mlirbc"])
def test_a_saved_module_compiles_to_the_same_without_the_model(name: str, tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    aot.export(model, X, dynamic_shapes=({0: "batch"},)).save_mlir(tmp_path / name)
    aot.export(tmp_path / name).compile(tmp_path / "m.vmfb")
    x = torch.randn(5, 3)
    assert_same(runtime.load(tmp_path / "m.vmfb")(x), model(x))


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "m.vmfb"
    path.write_bytes(b"old")
    out = aot.export(nn.Linear(3, 2), X)
    with pytest.raises(aot.CompileError):
        out.compile(path, flags=["--no-such-flag"])
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["m.vmfb"]


def test_saving_to_a_folder_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    out = aot.export(nn.Linear(3, 2), X)
    with pytest.raises(aot.ArtifactError, match=r"folder .* does not exist"):
        out.save_mlir(tmp_path / "no" / "m.mlir")
    with pytest.raises(aot.ArtifactError, match=r"folder .* does not exist"):
        out.compile(tmp_path / "no" / "m.vmfb")


def test_compile_returns_the_compilers_output_or_writes_to_one(tmp_path: Path) -> None:
    out = aot.export(nn.Linear(3, 2), X)
    memory = out.compile()
    assert memory is not None
    assert bytes(memory.map_memory()[:2]) == b"PK"
    given = Output.open_membuffer()
    assert out.compile(given) is None
    for output in (memory, given):
        assert runtime.load(bytes(output.map_memory()))(X).shape == (2, 2)


@pytest.mark.parametrize("backends", ["llvm-cpu", ["llvm-cpu"], ("vmvx",)])
def test_the_seed_spelling_of_the_target_works(backends: object, tmp_path: Path) -> None:
    out = aot.export(nn.Linear(3, 2), X)
    out.compile(tmp_path / "m.vmfb", target_backends=backends)
    assert runtime.load(tmp_path / "m.vmfb")(X).shape == (2, 2)


def test_several_backends_are_refused() -> None:
    with pytest.raises(aot.ExportError, match="one target"):
        aot.export(nn.Linear(3, 2), X).compile(target_backends="llvm-cpu,vmvx")


def test_flags_of_the_session_are_used_when_no_backend_is_named(tmp_path: Path) -> None:
    out = aot.export(nn.Linear(3, 2), X)
    out.session.set_flags("--iree-llvmcpu-debug-symbols=false")
    out.compile(tmp_path / "m.vmfb", target_backends=None)
    flags = runtime.load(tmp_path / "m.vmfb").info.options["flags"]
    assert "--iree-llvmcpu-debug-symbols=false" in flags


def test_a_bad_target_does_not_spoil_the_next_compile() -> None:
    out = aot.export(nn.Linear(3, 2), X)
    with pytest.raises(aot.ExportError, match=r"unknown target 'cpuu'.*did you mean 'cpu'"):
        out.compile(target="cpuu")
    with pytest.raises(aot.ExportError, match=r"has no option 'colour'; known: optimization_level"):
        out.compile(colour="red")
    assert out.compile() is not None


def test_phases_are_read_in_any_spelling_and_lower_the_module() -> None:
    out = aot.export(nn.Linear(3, 2), X)
    out.import_to("import")
    assert "torch.aten.linear" in str(out.mlir_module)
    out.import_to("iree-internal")
    out.import_to(aot.ImportPhase.FULL)
    text = str(out.mlir_module)
    assert "util.func public @main$async" in text
    assert "torch.aten" not in text
    with pytest.raises(aot.ExportError, match="unknown import phase 'later'"):
        out.import_to("later")


def test_a_lowered_module_is_saved_loaded_and_compiled_as_any(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    out = aot.export(model, X, dynamic_shapes=({0: "batch"},))
    out.import_to("full")
    assert str(out.signatures["main"]).endswith("where batch=0..")
    out.save_mlir(tmp_path / "m.mlirbc")
    loaded = aot.export(tmp_path / "m.mlirbc")
    before = str(loaded.mlir_module)
    for phase in ("full", "import", "torch_ir", None):  # it is there already, or further
        loaded.import_to(phase)
    assert str(loaded.mlir_module) == before
    loaded.compile(tmp_path / "m.vmfb")
    x = torch.randn(5, 3)
    torch.testing.assert_close(runtime.load(tmp_path / "m.vmfb")(x), model(x).detach())


def test_passes_run_on_the_module(capfd: pytest.CaptureFixture[str]) -> None:
    out = aot.export(lambda x: (x + 1, x + 1), X)
    assert str(out.mlir_module).count("torch.constant.int 1") > 1
    out.run_pass_pipeline("builtin.module(func.func(cse))", enable_ir_printing=True)
    assert str(out.mlir_module).count("torch.constant.int 1") == 1
    assert "IR Dump After CSE" in capfd.readouterr().err


@pytest.mark.parametrize("printing", [False, True])
def test_passes_that_fail_are_errors_with_the_reason(printing: bool) -> None:
    out = aot.export(nn.Linear(3, 2), X)
    with pytest.raises(aot.ExportError, match=r"'builtin.module\(nothing\)' failed: .*nothing"):
        out.run_pass_pipeline("builtin.module(nothing)", enable_ir_printing=printing)
    assert out.compile() is not None  # nothing is left switched


def test_printing_leaves_large_values_out(capfd: pytest.CaptureFixture[str]) -> None:
    aot.export(nn.Linear(60, 60), torch.zeros(1, 60)).print_readable()
    printed = capfd.readouterr().out
    assert "@__auto.weight" in printed
    assert len(printed) < 20_000


def test_verify_passes_for_a_sound_module() -> None:
    aot.export(nn.Linear(3, 2), X).verify()


def test_exporting_the_same_model_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    model = nn.Linear(3, 2)
    for name in ("a.mlirbc", "b.mlirbc"):
        aot.export(model, X, dynamic_shapes=({0: "batch"},)).save_mlir(tmp_path / name)
    assert (tmp_path / "a.mlirbc").read_bytes() == (tmp_path / "b.mlirbc").read_bytes()
