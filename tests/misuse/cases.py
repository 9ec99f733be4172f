"""Wrong uses of the toolkit: what each does, which error comes, what it says, what to do.

Each is a function of a folder to write in; its last line is the one that is wrong, and where an
error is about a line of the user's, the message names a line of this file. `docs/errors.md` is made
from this table.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from pelton import aot, runtime
from pelton.runtime.errors import PeltonError

Action = Callable[[Path], Any]


@dataclasses.dataclass(frozen=True)
class Misuse:
    """A wrong use.

    Attributes:
        error: The error that comes.
        says: A part of its message.
        fix: What to do, for the page; empty: the use is tested, and not on the page.
        action: Does it.
        line: Whether the message names a line of this file.
    """

    error: type[PeltonError]
    says: str
    fix: str
    action: Action
    line: bool = False

    @property
    def name(self) -> str:
        """What it is called: the function's name."""
        return self.action.__name__

    @property
    def source(self) -> str:
        """Its code, without the head of the function."""
        lines = inspect.getsource(self.action).splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("def ")) + 1
        return textwrap.dedent("\n".join(lines[start:])).strip()


MISUSES: list[Misuse] = []
"""All of them, in the order of this file."""


def misuse(
    error: type[PeltonError], says: str, fix: str = "", *, line: bool = False
) -> Callable[[Action], Action]:
    """Put a function into the table."""

    def note(action: Action) -> Action:
        MISUSES.append(Misuse(error, says, fix, action, line))
        return action

    return note


ROWS = aot.InputInfo((aot.NamedDimension("rows", 1, 2, 8), 4), torch.float32)
FOUR = aot.InputInfo((4,), torch.float32)


def double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def loaded(folder: Path, function: Any = double, *specs: Any, **options: Any) -> Any:
    """Export, compile and load a function; the program that the calls below are wrong for."""
    path = folder / "program.vmfb"
    aot.export(function, args=specs or (ROWS,), **options).compile(path, optimization_level=0)
    return runtime.load(path)


# What is exported


@misuse(aot.ExportError, "not a supported type; pass an nn.Module instance", "Make an instance.")
def export_a_class(folder: Path) -> None:
    aot.export(torch.nn.Linear, args=(torch.ones(4),))


@misuse(aot.ExportError, "cannot export 3: not a supported type")
def export_a_number(folder: Path) -> None:
    aot.export(3)


@misuse(aot.ExportError, "positional example arguments and args= were both given")
def export_with_arguments_twice(folder: Path) -> None:
    aot.export(double, torch.ones(4), args=(torch.ones(4),))


@misuse(aot.ExportError, "missing a required argument: 'x'")
def export_without_arguments(folder: Path) -> None:
    aot.export(double)


@misuse(aot.ExportError, "too many positional arguments")
def export_with_too_many_arguments(folder: Path) -> None:
    aot.export(double, args=(torch.ones(4), torch.ones(4)))


@misuse(
    aot.ExportError,
    "Python's control flow or a size depends on the value of a tensor",
    "Use torch.where or torch.cond, so that both ways are part of the program.",
    line=True,
)
def branch_on_a_value(folder: Path) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x
        return -x

    aot.export(program, args=(torch.ones(4),))


@misuse(aot.ExportError, "the program cannot be traced: ZeroDivisionError", line=True)
def fail_while_traced(folder: Path) -> None:
    aot.export(lambda x: x * (1 / 0), args=(torch.ones(4),))


@misuse(aot.ExportError, "result['found'] is a set, which cannot be a result")
def return_a_set(folder: Path) -> None:
    aot.export(lambda x: {"found": {1, 2}, "x": x}, args=(torch.ones(4),))


@misuse(aot.ExportError, "these tensors have no data")
def export_a_meta_model(folder: Path) -> None:
    aot.export(torch.nn.Linear(4, 2, device="meta"), args=(torch.ones(4),))


@misuse(aot.ArtifactError, "no such file")
def export_a_missing_file(folder: Path) -> None:
    aot.export(folder / "missing.mlir")


@misuse(aot.ArtifactError, "is no valid MLIR")
def export_a_broken_file(folder: Path) -> None:
    (folder / "broken.mlir").write_text("module { func.func }")
    aot.export(folder / "broken.mlir")


@misuse(
    aot.UnsupportedOpError,
    "operators without a lowering: ",
    "Rewrite the operator, or give a decomposition by `aot.extend_aot_decompositions`.",
    line=True,
)
def use_an_unknown_operator(folder: Path) -> None:
    aot.export(lambda x: torch.linalg.eig(x)[0], args=(torch.eye(3),))


# Sizes


@misuse(aot.DynamicShapeError, "", "Give both dimensions one name.")
def add_two_sizes_that_must_be_equal(folder: Path) -> None:
    columns = aot.InputInfo((aot.NamedDimension("columns", 1, 2, 8), 4), torch.float32)
    aot.export(lambda x, y: x + y, args=[ROWS, columns])


@misuse(aot.DynamicShapeError, "rows", "Leave the size symbolic: no int(), no if on it.", line=True)
def fix_a_size(folder: Path) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.view(2, 4)

    aot.export(program, args=[ROWS])


@misuse(aot.ExportError, "min <= opt <= max")
def give_bounds_out_of_order(folder: Path) -> None:
    aot.NamedDimension("rows", 4, 2, 8)


@misuse(aot.ExportError, "the name of a dimension must be text")
def give_a_dimension_no_name(folder: Path) -> None:
    aot.NamedDimension(3, 1, 2, 8)  # type: ignore[arg-type]


@misuse(aot.ExportError, "")
def give_a_size_as_text(folder: Path) -> None:
    aot.InputInfo(("rows", 4), torch.float32)  # type: ignore[arg-type]


@misuse(aot.ExportError, "")
def give_a_type_as_text(folder: Path) -> None:
    aot.InputInfo((3, 4), "float33")  # type: ignore[arg-type]


@misuse(aot.DynamicShapeError, "")
def name_sizes_of_an_unknown_argument(folder: Path) -> None:
    aot.export(double, args=(torch.ones(4),), dynamic_shapes={"z": {0: "rows"}})


# Calls


@misuse(
    runtime.SignatureError,
    "outside its range 1..8",
    "Pass a size within the bounds, or export with wider ones.",
)
def call_with_a_size_out_of_range(folder: Path) -> None:
    loaded(folder)(torch.ones(9, 4))


@misuse(runtime.SignatureError, "dimension 1 is fixed to 4, got 5")
def call_with_another_fixed_size(folder: Path) -> None:
    loaded(folder)(torch.ones(2, 5))


@misuse(runtime.SignatureError, "with 2 dimensions, got float32[4] with 1")
def call_with_another_rank(folder: Path) -> None:
    loaded(folder)(torch.ones(4))


@misuse(runtime.SignatureError, "got float64[2, 4]; cast it to float32 or export with float64")
def call_with_another_type(folder: Path) -> None:
    loaded(folder)(torch.ones(2, 4, dtype=torch.float64))


@misuse(runtime.SignatureError, "expects a tensor float32[rows, 4], got list [1, 2]")
def call_with_a_list(folder: Path) -> None:
    loaded(folder)([1, 2])


@misuse(runtime.SignatureError, "expects a tensor float32[rows, 4], got NoneType None")
def call_with_none(folder: Path) -> None:
    loaded(folder)(None)


@misuse(runtime.SignatureError, "missing a required argument: 'x'")
def call_without_arguments(folder: Path) -> None:
    loaded(folder)()


@misuse(runtime.SignatureError, "too many positional arguments (2 given; extra: float32[4])")
def call_with_too_many_arguments(folder: Path) -> None:
    loaded(folder)(torch.ones(2, 4), torch.ones(4))


@misuse(runtime.SignatureError, "got an unexpected keyword argument 'y'")
def call_with_an_unknown_name(folder: Path) -> None:
    loaded(folder)(torch.ones(2, 4), y=torch.ones(2, 4))


@misuse(runtime.SignatureError, "both must be equal")
def call_with_sizes_that_disagree(folder: Path) -> None:
    program = loaded(folder, lambda x, y: x + y, ROWS, ROWS)
    program(torch.ones(2, 4), torch.ones(3, 4))


@misuse(
    runtime.SignatureError,
    "was fixed to 3 at export, got 4; export again with an input spec for it",
    "Make it an input: `aot.DimensionInputInfo((1, 3, 8))`.",
)
def call_with_another_constant(folder: Path) -> None:
    program = loaded(folder, lambda x, n: x * n, ROWS, 3)
    program(torch.ones(2, 4), 4)


@misuse(runtime.SignatureError, "argument inputs expects")
def call_with_another_structure(folder: Path) -> None:
    program = loaded(folder, lambda inputs: inputs["a"] + 1, {"a": FOUR})
    program({"b": torch.ones(4)})


@misuse(runtime.SignatureError, "expects int, got float 2.5")
def call_with_a_fraction_for_an_integer(folder: Path) -> None:
    program = loaded(folder, lambda x, n: x * n, FOUR, aot.DimensionInputInfo((1, 2, 9)))
    program(torch.ones(4), 2.5)


@misuse(runtime.SignatureError, "expects int of 64 bits, got 1606938044258990275541962092341162602")
def call_with_a_huge_integer(folder: Path) -> None:
    program = loaded(folder, lambda x, n: x * n, FOUR, aot.DimensionInputInfo((1, 2, 9)))
    program(torch.ones(4), 2**200)


@misuse(runtime.SignatureError, "there are 2 entry points; call one by name: one, two")
def call_a_program_of_several_entry_points(folder: Path) -> None:
    class Pair(aot.CompiledModule):
        def one(self, x=aot.AbstractTensor(2)):  # type: ignore[no-untyped-def]
            return x + x

        def two(self, x=aot.AbstractTensor(2)):  # type: ignore[no-untyped-def]
            return x

    aot.export(Pair).compile(folder / "pair.vmfb", optimization_level=0)
    runtime.load(folder / "pair.vmfb")(torch.ones(2))


# Files


@misuse(runtime.ArtifactError, "no such file", "Check the path.")
def load_a_missing_file(folder: Path) -> None:
    runtime.load(folder / "missing.vmfb")


@misuse(runtime.ArtifactError, "is empty")
def load_an_empty_file(folder: Path) -> None:
    (folder / "empty.vmfb").touch()
    runtime.load(folder / "empty.vmfb")


@misuse(runtime.ArtifactError, "is a folder; give the path of a file")
def load_a_folder(folder: Path) -> None:
    runtime.load(folder)


@misuse(runtime.ArtifactError, "which must be compiled first: pelton compile")
def load_a_module_that_is_not_compiled(folder: Path) -> None:
    aot.export(double, args=[ROWS]).save_mlir(folder / "m.mlirbc")
    runtime.load(folder / "m.mlirbc")


@misuse(
    runtime.ArtifactError,
    "is truncated or damaged",
    "Copy the file again; what is whole has its checksums.",
)
def load_half_a_file(folder: Path) -> None:
    loaded(folder)
    data = (folder / "program.vmfb").read_bytes()
    (folder / "half.vmfb").write_bytes(data[: len(data) // 2])
    runtime.load(folder / "half.vmfb")


@misuse(aot.ArtifactError, "does not exist")
def save_to_a_missing_folder(folder: Path) -> None:
    aot.export(double, args=[ROWS]).save_mlir(folder / "missing" / "m.mlirbc")


@misuse(aot.ArtifactError, "it is a folder; give the name of a file")
def compile_to_a_folder(folder: Path) -> None:
    aot.export(double, args=[ROWS]).compile(folder)


@misuse(runtime.ArtifactError, "no such file")
def open_a_missing_archive(folder: Path) -> None:
    runtime.open_archive(folder / "missing.irpa")


# Parameters


def external(folder: Path) -> Path:
    """Compile a layer whose weights come from an archive."""
    out = aot.export(torch.nn.Linear(4, 2), args=[ROWS], external_parameters=True)
    out.compile(folder / "layer.vmfb", optimization_level=0)
    return folder / "layer.vmfb"


@misuse(
    runtime.ParameterError,
    "weight",
    "Load with `parameters=` an archive, or a `state_dict`.",
)
def load_without_parameters(folder: Path) -> None:
    runtime.load(external(folder))


@misuse(runtime.ParameterError, "bias")
def load_with_a_parameter_missing(folder: Path) -> None:
    runtime.load(external(folder), parameters={"weight": torch.ones(2, 4)})


@misuse(runtime.ParameterError, "weight")
def load_with_a_parameter_of_another_shape(folder: Path) -> None:
    weights = {"weight": torch.ones(4, 2), "bias": torch.ones(2)}
    runtime.load(external(folder), parameters=weights)


@misuse(runtime.ParameterError, "weight")
def load_with_a_parameter_of_another_type(folder: Path) -> None:
    weights = {"weight": torch.ones(2, 4).half(), "bias": torch.ones(2)}
    runtime.load(external(folder), parameters=weights)


@misuse(runtime.ParameterError, "extra")
def load_with_a_parameter_too_many(folder: Path) -> None:
    weights = {"weight": torch.ones(2, 4), "bias": torch.ones(2), "extra": torch.ones(1)}
    runtime.load(external(folder), parameters=weights)


@misuse(aot.ParameterError, "has the names of parameters, not their values")
def save_parameters_of_a_loaded_module(folder: Path) -> None:
    out = aot.export(torch.nn.Linear(4, 2), args=[ROWS], external_parameters=True)
    out.save_mlir(folder / "m.mlirbc")
    aot.export(folder / "m.mlirbc").save_parameters(folder / "w.irpa")


@misuse(aot.ParameterError, "there is no scope 'other'; there are: model")
def save_parameters_of_an_unknown_scope(folder: Path) -> None:
    out = aot.export(torch.nn.Linear(4, 2), args=[ROWS], external_parameters=True)
    out.save_parameters(folder / "w.irpa", scope="other")


# Targets, options, devices


@misuse(aot.ExportError, "unknown target", "Use one that the message lists.")
def compile_for_an_unknown_target(folder: Path) -> None:
    aot.export(double, args=[ROWS]).compile(target="gpu")


@misuse(aot.ExportError, "optimisation_level")
def compile_with_an_unknown_option(folder: Path) -> None:
    aot.export(double, args=[ROWS]).compile(optimisation_level=3)


@misuse(aot.ExportError, "optimization_level must be 0 to 5, got 9")
def compile_at_an_unknown_level(folder: Path) -> None:
    aot.export(double, args=[ROWS]).compile(optimization_level=9)


@misuse(aot.ExportError, "unknown CUDA architecture 'sm_900'")
def compile_for_an_unknown_gpu(folder: Path) -> None:
    aot.export(double, args=[ROWS]).compile(target="cuda:sm_900")


@misuse(aot.ExportError, "flags must be a sequence of texts")
def compile_with_flags_as_one_text(folder: Path) -> None:
    aot.export(double, args=[ROWS]).compile(flags="--iree-opt-level=O3")


@misuse(
    aot.CompileError,
    "failed to compile",
    "Read `.diagnostics`; the folder that the message names has all to report it.",
)
def compile_with_an_unknown_flag(folder: Path) -> None:
    aot.export(double, args=[ROWS]).compile(flags=["--no-such-flag"], cache_dir=None)


@misuse(runtime.DeviceError, "", "`pelton devices` lists what is there.")
def load_for_a_missing_device(folder: Path) -> None:
    loaded(folder)
    runtime.load(folder / "program.vmfb", device="toaster")


@misuse(
    runtime.IndexOutOfRangeError,
    "index out of range in index",
    "Give an index from 0 to the size less one; a negative one counts from the end where eager "
    "lets it.",
)
def look_up_what_the_table_does_not_have(folder: Path) -> None:
    places = aot.InputInfo((2,), torch.int64)
    table = loaded(folder, lambda x, i: x[i], FOUR, places)
    table(torch.ones(4), torch.tensor([0, 4]))


# Procedures


@misuse(
    aot.ProcedureTraceError,
    "",
    "Use `aot.cond`, `aot.while_loop` or `aot.for_loop`.",
    line=True,
)
def branch_on_a_traced_number(folder: Path) -> None:
    class Program(aot.CompiledModule):
        def main(self, n=aot.AbstractI32):  # type: ignore[no-untyped-def]
            return n if n == 1 else n + 1

    aot.export(Program)


@misuse(aot.ExportError, "Program is a CompiledModule, whose methods say what they take")
def export_procedures_with_arguments(folder: Path) -> None:
    class Program(aot.CompiledModule):
        def main(self, x=aot.AbstractTensor(2)):  # type: ignore[no-untyped-def]
            return x

    aot.export(Program, args=(torch.ones(2),))


@misuse(aot.ProcedureTraceError, "", line=True)
def store_to_what_is_not_mutable(folder: Path) -> None:
    class Program(aot.CompiledModule):
        total = aot.export_global(aot.AbstractTensor(2))

        def main(self, x=aot.AbstractTensor(2)):  # type: ignore[no-untyped-def]
            self.total = x

    aot.export(Program)


@misuse(aot.ProcedureTraceError, "", line=True)
def use_an_unknown_attribute(folder: Path) -> None:
    class Program(aot.CompiledModule):
        def main(self, x=aot.AbstractTensor(2)):  # type: ignore[no-untyped-def]
            return self.wieght

    aot.export(Program)


# compile(), verification


@misuse(aot.ExportError, "has no input: give aot.InputInfo")
def compile_a_function_without_inputs(folder: Path) -> None:
    aot.compile(double, args=[torch.ones(4)])


@misuse(aot.ExportError, "a compiled function returns tensors")
def compile_a_function_that_returns_a_number(folder: Path) -> None:
    aot.compile(lambda x: (x, 3), args=[FOUR])


@misuse(
    aot.NumericsError,
    "differs from eager PyTorch",
    "`numerics=aot.Numerics(bisect=True)` finds the first operator that differs.",
)
def compare_with_another_program(folder: Path) -> None:
    out = aot.export(double, args=[ROWS])
    out.verify(numerics=True, against=lambda x: x * 3, optimization_level=0)


@misuse(aot.ExportError, "is no integer input; there are: none")
def give_the_range_of_an_unknown_input(folder: Path) -> None:
    out = aot.export(double, args=[ROWS])
    out.verify(numerics=aot.Numerics(integers={"tokens": (0, 9)}), optimization_level=0)


@misuse(aot.ExportError, "is no element type")
def give_a_tolerance_for_an_unknown_type(folder: Path) -> None:
    aot.Numerics(tolerances={"float33": 0.1})


# Packages


@misuse(
    aot.MissingDependencyError,
    "not installed",
    "Run the pip command of the message.",
)
def convert_without_onnx(folder: Path) -> None:
    with without("onnx"):
        aot.export(double, args=[FOUR]).to_onnx(folder / "m.onnx")


@contextlib.contextmanager
def without(package: str) -> Iterator[None]:
    """Have a package missing."""
    hidden = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith(package)}
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.modules.pop(package)
        sys.modules.update(hidden)
