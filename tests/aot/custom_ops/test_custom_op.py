"""Custom operators in eager, in exported programs and in procedures, against PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pelton import aot, runtime
from pelton.aot.custom_ops import BodyBuilder, custom_op
from tests.aot.custom_ops.operators import bodiless, gated, moved, product
from tests.programs import assert_same, check_ir, compiled, through_files


class Model(torch.nn.Module):
    """A custom operator between others, with a parameter as its gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = torch.nn.Parameter(torch.linspace(-1, 1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(gated(x + 1, self.gate, 0.5))


def test_exported_operator_gives_what_eager_gives_at_several_sizes(tmp_path: Path) -> None:
    model = Model()
    exe = compiled(tmp_path, model, (torch.zeros(3, 4),), dynamic_shapes=({0: "rows"},))
    for rows in (1, 3, 64):
        x = torch.randn(rows, 4)
        assert_same(exe(x), model(x))


def test_body_serves_several_types_ranks_and_values_in_one_program(tmp_path: Path) -> None:
    def several(
        x: torch.Tensor, half: torch.Tensor, gate: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        return (
            gated(x, gate),
            gated(x, gate, 0.1),  # which no float32 is exactly
            gated(x + 1, gate, 0.1),
            gated(x[0, 0], gate, -1.0),
            gated(half, gate.to(half.dtype)),
        )

    args = (torch.randn(2, 3, 5), torch.randn(7, 5).half(), torch.randn(5))
    out = aot.export(several, args=args)
    text = str(out.mlir_module)
    assert text.count("func.func private @testing.gated") == 4
    exe = through_files(out, tmp_path)
    for left, right in zip(exe(*args), several(*args), strict=True):
        assert_same(left, right, rtol=2e-3 if right.dtype is torch.float16 else 1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
def test_operator_keeps_its_element_type(dtype: torch.dtype, tmp_path: Path) -> None:
    x, y = torch.randn(3, 4, dtype=dtype), torch.randn(4, 2, dtype=dtype)
    result = compiled(tmp_path, lambda x, y: product(x, y), (x, y))(x, y)
    assert result.dtype is dtype
    assert_same(result, x @ y, rtol=2e-2 if dtype is torch.bfloat16 else 1e-9)


def test_registered_body_of_a_torch_library_operator_is_expanded(tmp_path: Path) -> None:
    x, y = torch.arange(5), torch.full((5,), 2)
    args = (x, y, aot.DimensionInputInfo((1, 2, 9)))
    exe = compiled(tmp_path, lambda x, y, n: moved(x, y, n), args)
    for shift in (1, 7):
        assert_same(exe(x, y, shift), moved(x, y, shift))


def test_module_calls_the_body_as_a_function() -> None:
    check_ir(
        aot.export(Model(), args=(torch.zeros(3, 4),)),
        """
        CHECK: call @testing.gated
        CHECK: torch.aten.exp
        CHECK: func.func private @testing.gated({{.*}}pelton.custom_op = "testing::gated"
        CHECK: linalg.generic
        """,
    )


@pytest.mark.parametrize("rows", [None, {0: "rows"}], ids=["static", "dynamic"])
def test_operator_is_fused_with_its_neighbours(rows: dict[int, str] | None, tmp_path: Path) -> None:
    shapes = None if rows is None else (rows,)
    out = aot.export(Model(), args=(torch.zeros(3, 4),), dynamic_shapes=shapes)
    out.save_mlir(tmp_path / "model.mlirbc")
    flags = ["--iree-hal-target-backends=llvm-cpu", "--compile-to=flow", "--iree-opt-level=O1"]
    tool = Path(sys.executable).parent / "iree-compile"
    command = [tool, "--iree-input-type=auto", *flags, "model.mlirbc", "-o", "flow.mlir"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert (tmp_path / "flow.mlir").read_text().count("flow.executable private") == 1


def test_saved_module_is_compiled_in_a_process_that_does_not_know_the_operator(
    tmp_path: Path,
) -> None:
    model = Model()
    aot.export(model, args=(torch.zeros(3, 4),)).save_mlir(tmp_path / "model.mlirbc")
    command = [sys.executable, "-m", "pelton.cli", "compile", "model.mlirbc", "-o", "model.vmfb"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    x = torch.randn(3, 4)
    assert_same(runtime.load(tmp_path / "model.vmfb")(x), model(x))


def test_operator_works_in_procedures_and_jittables(tmp_path: Path) -> None:
    class Procedures(aot.CompiledModule):
        def direct(self, x=aot.AbstractTensor(None, 4), gate=aot.AbstractTensor(4)):  # type: ignore[no-untyped-def]
            return gated(x, gate, 0.25)

        def through(self, x=aot.AbstractTensor(None, 4), gate=aot.AbstractTensor(4)):  # type: ignore[no-untyped-def]
            return self.twice(x, gate)

        @aot.jittable
        def twice(x, gate):  # type: ignore[no-untyped-def]
            return gated(gated(x, gate), gate)

    exe = through_files(aot.export(Procedures), tmp_path)
    gate = torch.randn(4)
    for rows in (1, 5):
        x = torch.randn(rows, 4)
        assert_same(exe.direct(x, gate), gated(x, gate, 0.25))
        assert_same(exe.through(x, gate), gated(gated(x, gate), gate))


# In eager


def test_operator_has_the_gradient_that_is_registered_for_it() -> None:
    squared = custom_op(
        "testing::squared(Tensor x) -> Tensor",
        shapes="n -> n",
        body="%0 = arith.mulf %x, %x : $x\n return %0 : $x",
        eager=lambda x: x * x,
    )
    squared.register_autograd(
        lambda ctx, gradient: 2 * ctx.saved_tensors[0] * gradient,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
    )
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    squared(x).sum().backward()
    assert_same(x.grad, torch.tensor([2.0, 6.0]))


# Bodies that are functions


def test_function_emits_the_body_with_the_constants_of_the_call(tmp_path: Path) -> None:
    from iree.compiler.dialects import flow

    def emit(builder: BodyBuilder, x, axis: int, mode: str, extra):  # type: ignore[no-untyped-def]
        assert (axis, mode, extra) == (1, "wide", None)
        assert builder.iterators == ["parallel", "parallel"]
        sizes = [builder.sizes["n"], builder.sizes["m"]]
        return flow.TensorReshapeOp(
            builder.result_types[0], x, [builder.sizes["m"], builder.sizes["n"]], sizes
        ).result

    swapped = custom_op(
        "testing::swapped(Tensor x, int axis, str mode, Tensor? extra=None) -> Tensor",
        shapes="m n, ... -> n m",
        body=emit,
        eager=lambda x, axis, mode, extra=None: x.reshape(x.shape[1], x.shape[0]).clone(),
    )
    x = torch.randn(2, 6)
    exe = compiled(tmp_path, lambda x: swapped(x, 1, "wide") + 1, (x,))
    assert_same(exe(x), x.reshape(6, 2) + 1)


def test_changed_arguments_of_a_body_are_copies(tmp_path: Path) -> None:
    written = custom_op(
        "testing::written(Tensor x, Tensor y) -> Tensor",
        shapes="n, m -> n",
        body="%0 = tensor.insert_slice %y into %x[0] [%size.m] [1] : $y into $x\nreturn %0 : $x",
    )
    out = aot.export(lambda x, y: written(x, y), args=(torch.ones(4), torch.zeros(2)))
    exe = through_files(out, tmp_path)
    for call in (exe, written):
        x = torch.ones(4)
        assert_same(call(x, torch.zeros(2)), torch.tensor([0.0, 0.0, 1.0, 1.0]))
        assert_same(x, torch.ones(4))


# Phases


def test_import_phase_decides_whether_operators_are_expanded() -> None:
    class Phased(aot.CompiledModule):
        def run(self, x=aot.AbstractTensor(2, 4), gate=aot.AbstractTensor(4)):  # type: ignore[no-untyped-def]
            return gated(x, gate)

    instance = Phased(import_to="torch_ir")
    operator = 'torch.operator "torch.testing.gated"'
    assert operator in str(aot.CompiledModule.get_mlir_module(instance))
    aot.CompiledModule.expand_custom_ops(instance)
    text = str(aot.CompiledModule.get_mlir_module(instance))
    assert operator not in text and "linalg.generic" in text
    aot.CompiledModule.expand_custom_ops(instance)  # once more changes nothing
    assert str(aot.CompiledModule.get_mlir_module(instance)) == text


def test_module_saved_with_operators_is_expanded_when_it_is_imported(tmp_path: Path) -> None:
    class Phased(aot.CompiledModule):
        def run(self, x=aot.AbstractTensor(2, 4), gate=aot.AbstractTensor(4)):  # type: ignore[no-untyped-def]
            return gated(x, gate)

    aot.CompiledModule.save_mlir(Phased(import_to="torch_ir"), tmp_path / "early.mlirbc")
    out = aot.export(tmp_path / "early.mlirbc")
    assert "torch.operator" not in str(out.mlir_module)
    out.compile(tmp_path / "early.vmfb")
    x, gate = torch.randn(2, 4), torch.randn(4)
    assert_same(runtime.load(tmp_path / "early.vmfb").run(x, gate), gated(x, gate))


# Refusals


def test_all_operators_without_a_body_are_refused_by_name() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return bodiless(gated(torch.poisson(x), x))

    with pytest.raises(aot.UnsupportedOpError, match="register_body") as caught:
        aot.export(program, args=(torch.ones(2),))
    assert caught.value.operators == ("aten.poisson.default", "testing.bodiless.default")


def test_operators_without_a_body_in_a_saved_module_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "alien.mlir").write_text(
        """
        func.func @main(%x: !torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32> {
          %0 = torch.operator "torch.alien.one"(%x)
            : (!torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>
          %1 = torch.operator "torch.alien.two"(%0)
            : (!torch.vtensor<[2],f32>) -> !torch.vtensor<[2],f32>
          return %1 : !torch.vtensor<[2],f32>
        }
        """
    )
    out = aot.export(tmp_path / "alien.mlir")
    with pytest.raises(aot.UnsupportedOpError, match=r"alien\.one.*alien\.two") as caught:
        out.import_to("import")
    assert caught.value.operators == ("alien.one", "alien.two")


def test_operator_that_torch_has_no_form_for_is_refused_by_name_when_raised() -> None:
    out = aot.export(Model(), args=(torch.zeros(3, 4),))
    with pytest.raises(aot.UnsupportedOpError, match="custom operator testing::gated"):
        aot.to_torch(out)


def test_operator_made_of_known_operations_is_raised() -> None:
    out = aot.export(lambda x, y: moved(x, y, 3)[1], args=(torch.arange(4), torch.full((4,), 1)))
    x, y = torch.arange(4), torch.full((4,), 1)
    assert_same(aot.to_torch(out)(x, y), x > y)
