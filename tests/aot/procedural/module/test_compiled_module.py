"""The class: names, phases, static methods, and the time that many procedures take."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from iree.compiler.ir import Context, Module

from pelton import aot
from pelton.aot import CompiledModule
from pelton.aot.procedural.calls.captured import ProgramTable
from tests.programs import check_ir


class SmallModule(CompiledModule):
    def f(self, x=aot.AbstractTensor(2)):
        return self.step(x)

    @CompiledModule.jittable
    def step(x):
        return x * 2


def test_the_module_is_named_after_the_class() -> None:
    class MyDecoderModule(CompiledModule, export_name="other"):
        pass

    assert CompiledModule.get_class_info(SmallModule).export_name == "small"
    assert CompiledModule.get_class_info(MyDecoderModule).export_name == "other"
    assert "module @renamed" in str(aot.export(SmallModule, module_name="renamed").mlir_module)


def test_an_instance_is_the_imported_module(tmp_path: Path) -> None:
    inst = SmallModule(import_to=None)
    module_op = CompiledModule.get_mlir_module(inst)
    assert module_op is CompiledModule.get_module_builder(inst).module_op
    assert "f" in CompiledModule.get_info(inst).procedures
    CompiledModule.expand_custom_ops(inst)
    CompiledModule.save_mlir(inst, tmp_path / "small.mlir")
    CompiledModule.save_mlir(inst, tmp_path / "small.mlirbc")
    assert "module @small" in (tmp_path / "small.mlir").read_text()
    assert (tmp_path / "small.mlirbc").read_bytes()[:4] == b"ML\xefR"
    output = aot.ExportOutput(None, inst)
    assert str(output.signatures["f"]) == "f(x: float32[2]) -> (float32[2])"


def test_full_import_lowers_to_the_compilers_dialects() -> None:
    inst = SmallModule(import_to="full")
    text = str(CompiledModule.get_mlir_module(inst))
    assert "util.func public @f" in text
    assert "torch.aten" not in text
    CompiledModule.run_import(inst, "full")
    CompiledModule.run_pass_pipeline(inst, "builtin.module(canonicalize)")
    with pytest.raises(aot.ExportError, match=r"the passes .* failed"):
        CompiledModule.run_pass_pipeline(inst, "builtin.module(nothing)")


def test_a_module_is_built_in_a_given_context_or_module() -> None:
    with Context() as context:
        assert CompiledModule.get_mlir_module(SmallModule()).context is context
    assert CompiledModule.get_mlir_module(SmallModule(context=context)).context is context
    module = Module.parse("module @given {}", context)
    inst = SmallModule(module_op=module.operation)
    assert "func.func @f" in str(module)
    with pytest.raises(aot.ExportError, match="both given"):
        SmallModule(context=context, module_op=inst.module_op)


def test_create_from_dict_leaves_the_dict() -> None:
    members = {"f": lambda self, x=aot.AbstractI64: x + 1}
    made = CompiledModule.create_from_dict("Made", members, export_name="made")
    assert list(members) == ["f"]
    check_ir(aot.export(made), "CHECK: module @made\nCHECK: func.func @f(%arg0: i64) -> i64")


def test_what_is_no_compiled_module_is_refused() -> None:
    with pytest.raises(aot.ExportError, match="no subclass of CompiledModule"):
        CompiledModule.get_class_info(int)  # type: ignore[arg-type]
    with pytest.raises(aot.ExportError, match="an instance of a CompiledModule"):
        CompiledModule.get_module_builder(SmallModule)  # type: ignore[arg-type]
    with pytest.raises(aot.ExportError, match="modules have an attribute of that name"):
        CompiledModule.create_from_dict("Case", {"module_op": lambda self: None})


def test_schemas_of_arguments_and_results_are_stated() -> None:
    text = str(aot.export(SmallModule).mlir_module)
    assert "torch.args_schema" in text
    assert "torch.return_schema" in text


def many(count: int) -> type[CompiledModule]:
    members = {
        f"f{number}": lambda self, x=aot.AbstractTensor(2): self.step(x) for number in range(count)
    }
    members["step"] = SmallModule.__dict__["step"]
    return CompiledModule.create_from_dict("Many", members)


def test_procedures_that_share_a_jittable_take_linear_time() -> None:
    aot.export(many(2))
    seconds = []
    for count in (100, 200):
        start = time.process_time()
        inst = many(count)()
        seconds.append(time.process_time() - start)
        table = ProgramTable.of(CompiledModule.get_module_builder(inst))
        assert len(table) == 1
        assert str(inst.module_op).count("call @step(") == count
    assert seconds[1] < 2.3 * seconds[0] + 0.2


def test_two_threads_may_export_at_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        texts = {
            str(out.mlir_module) for out in pool.map(lambda _: aot.export(SmallModule), "abcd")
        }
    assert len(texts) == 1
