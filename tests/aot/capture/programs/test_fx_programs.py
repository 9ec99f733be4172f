"""Several programs of one module become one module with shared weights and state."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn

from pelton import aot, runtime
from tests.aot import shared_programs as shared
from tests.programs import assert_same, through_files

X = torch.ones(2, 4)


@pytest.fixture(scope="module")
def exported() -> aot.ExportOutput:
    return aot.export(shared.build(shared.Model()))


@pytest.fixture(scope="module")
def executable(exported: aot.ExportOutput, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return through_files(exported, tmp_path_factory.mktemp("programs"))


def assert_runs_as_eager(executable: runtime.Executable, model: shared.Model) -> None:
    """Call the programs in turns, at several sizes, and compare with the module itself."""
    for count in (3, 1, 7):
        tokens = torch.arange(count)
        with torch.no_grad():
            assert_same(executable.prefill(tokens), shared.prefill(model, tokens))
            for number in (4, 9):
                token = torch.tensor([number])
                assert_same(executable.decode(token), shared.decode(model, token))
                assert_same(executable.length(), shared.length(model))
    assert_same(executable.state["cache"], model.cache)


def test_programs_share_what_any_of_them_changes(executable: runtime.Executable) -> None:
    executable.reset_state()
    assert_runs_as_eager(executable, shared.Model())


def test_each_tensor_is_one_global_however_many_programs_have_it(
    exported: aot.ExportOutput,
) -> None:
    globals_ = re.findall(r"util.global private (mutable )?@(\S+)", str(exported.mlir_module))
    assert sorted(globals_) == [
        ("", "__auto.constant_2048_torch.float32"),
        ("", "__auto.mask"),
        ("", "__auto.words.weight"),
        ("mutable ", "__auto.cache"),
        ("mutable ", "__auto.length"),
    ]


def test_signatures_have_names_ranges_structures_and_state(exported: aot.ExportOutput) -> None:
    texts = [str(exported.signatures[name]) for name in ("length", "prefill", "decode")]
    assert texts == [
        "length() -> (int64[1])",
        "prefill(tokens: int64[count]) -> (float32[16]) where count=1..12",
        "decode(token: int64[1], scale: 2.0) -> (float32[16])",
    ]
    assert exported.signatures["prefill"].result_tree == ["dict", [["logits", 0]]]
    assert set(exported.signatures["decode"].mutates) == {"cache", "length"}
    assert exported.signatures["length"].mutates == ()


def test_ranges_are_checked_at_the_call(executable: runtime.Executable) -> None:
    with pytest.raises(runtime.SignatureError, match=r"\('count'\) is 13, outside its range 1\.\."):
        executable.prefill(torch.zeros(13, dtype=torch.int64))


def test_exporting_leaves_the_programs_as_they_are() -> None:
    programs = shared.build(shared.Model())
    first, second = aot.export(programs), aot.export(programs)
    assert str(first.mlir_module) == str(second.mlir_module)


def test_strict_traces_give_the_same_programs(tmp_path: Path) -> None:
    out = aot.export(shared.build(shared.Model(), strict=True))
    assert_runs_as_eager(through_files(out, tmp_path), shared.Model())


# Forms of export_program


class Pair(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor


@pytest.fixture
def builder() -> aot.FxProgramsBuilder:
    return aot.FxProgramsBuilder(nn.Linear(4, 3))


def test_a_decorator_with_arguments_gives_the_program(builder: aot.FxProgramsBuilder) -> None:
    @builder.export_program(args=(X,), name="apply")
    def anything(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
        return module(x).relu()

    assert list(builder.programs) == ["apply"]
    assert anything is builder.programs["apply"].target
    root = builder.root_module
    assert anything.state_dict["root.weight"] is root.weight
    assert_same(anything.module()(X), root(X).relu())


def test_a_decorator_without_arguments_is_for_functions_of_the_module_alone(
    builder: aot.FxProgramsBuilder,
) -> None:
    @builder.export_program
    def norm(module: nn.Module) -> torch.Tensor:
        return module.weight.norm()

    assert_same(norm.module()(), builder.root_module.weight.norm())


def test_programs_are_called_with_the_arguments_of_their_functions(
    builder: aot.FxProgramsBuilder,
) -> None:
    def combine(
        module: nn.Module,
        pair: Pair,
        kind: str,
        *rest: torch.Tensor,
        scale: float = 2.0,
        extra: torch.Tensor | None = None,
        **named: torch.Tensor,
    ) -> dict[str, Any]:
        total = module(pair.left + pair.right + sum(rest) + named["more"]) * scale
        return {"total": total, "kind": kind, "nothing": None, "pair": Pair(total, pair.left)}

    args: tuple[Any, ...] = (Pair(X, X), "a", X, X)
    shapes = {"pair": ({0: "rows"}, {0: "rows"}), "rest": ({0: "rows"},) * 2, "more": {0: "rows"}}
    program = builder.export_program(
        combine, args=args, kwargs={"more": X}, dynamic_shapes=shapes, strict=False
    )
    y = torch.randn(5, 4)
    call = ((Pair(y, y), "a", y, y), {"scale": 2.0, "extra": None, "more": y})
    expected = combine(builder.root_module, *call[0], **call[1])
    found = program.module()(*call[0], **call[1])
    assert_same(found["total"], expected["total"])
    assert (found["kind"], found["nothing"]) == ("a", None)
    out = aot.export(builder)
    assert [str(dim) for dim in out.signatures["combine"].dims] == ["rows=0.."]
    assert str(aot.export(program).signatures["main"]).startswith("main(pair.left: float32[pair")


def test_a_program_is_a_member_of_a_compiled_module(
    builder: aot.FxProgramsBuilder, tmp_path: Path
) -> None:
    program = builder.export_program(
        lambda module, x: module(x), args=(X,), dynamic_shapes=({0: "rows"},), name="apply"
    )

    class Twice(aot.CompiledModule):
        _apply = program

        def twice(self, x=aot.AbstractTensor(None, 4)):
            return self._apply(x), self._apply(x + 1)

    executable = through_files(aot.export(Twice), tmp_path)
    y, root = torch.randn(3, 4), builder.root_module
    assert_same(executable.twice(y), (root(y).detach(), root(y + 1).detach()))


def test_devices_of_arguments_skip_constants(builder: aot.FxProgramsBuilder) -> None:
    builder.export_program(
        lambda module, scale, x: module(x) * scale,
        args=(2.0, X),
        name="apply",
        arg_device={1: aot.DeviceAffinity(3)},
    )
    text = str(aot.export(builder).mlir_module)
    pattern = r"@apply\(%arg0: \S+ \{iree.abi.affinity = #hal.device.promise<@__device_3>\}"
    assert re.search(pattern, text)


# External and missing data


def test_external_parameters_are_taken_from_an_archive_once(tmp_path: Path) -> None:
    model = shared.Model()
    out = aot.export(shared.build(model), external_parameters="lm")
    assert set(out.parameters["lm"]) == {"words.weight", "cache", "mask"}
    out.save_parameters(tmp_path / "lm.irpa")
    executable = through_files(out, tmp_path, parameters={"lm": tmp_path / "lm.irpa"})
    assert_runs_as_eager(executable, model)


def test_a_model_without_data_shares_its_parameters_too() -> None:
    with torch.device("meta"):
        builder = aot.FxProgramsBuilder(nn.Linear(4, 3))
    for name in ("first", "second"):
        builder.export_program(lambda module, x: module(x), args=(X,), name=name, strict=False)
    out = aot.export(builder, external_parameters=True)
    assert len(re.findall("util.global private", str(out.mlir_module))) == 2
    with pytest.raises(aot.ExportError, match="have no data"):
        aot.export(builder)


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "taken"}, "'taken' is exported multiple times"),
        ({}, "'<lambda>' cannot be the name of an entry point; give one by name="),
        ({"name": "a b"}, "'a b' cannot be the name"),
        ({"name": "f", "args": (X, X)}, "cannot be called with these arguments"),
        ({"name": "f", "arg_device": {1: aot.DeviceAffinity(0)}}, r"argument 1, .* are 0 \(x\)"),
        ({"name": "f", "arg_device": {0: 1}}, "must be a DeviceAffinity, got 1"),
    ],
)
def test_bad_programs_are_refused_and_not_added(
    options: dict[str, Any], message: str, builder: aot.FxProgramsBuilder
) -> None:
    function = lambda module, x: module(x)  # noqa: E731 - which has no name to take
    builder.export_program(function, args=(X,), name="taken", strict=False)
    with pytest.raises(aot.ExportError, match=message):
        builder.export_program(function, **{"args": (X,), "strict": False, **options})
    assert list(builder.programs) == ["taken"]


def test_only_modules_have_programs() -> None:
    with pytest.raises(aot.ExportError, match=r"takes an nn\.Module, got <built-in"):
        aot.FxProgramsBuilder(torch.relu_)  # type: ignore[arg-type]


def test_programs_bring_their_own_arguments(builder: aot.FxProgramsBuilder) -> None:
    with pytest.raises(aot.ExportError, match="no programs to export"):
        aot.export(builder)
    builder.export_program(lambda module, x: module(x), args=(X,), name="f", strict=False)
    with pytest.raises(aot.ExportError, match="has its arguments, sizes and names from"):
        aot.export(builder, args=(X,))
    with pytest.raises(aot.ExportError, match="has its arguments, sizes and names from"):
        aot.export(builder, function_name="g")


def test_training_mode_is_warned_of() -> None:
    builder = aot.FxProgramsBuilder(nn.Sequential(nn.Dropout(0.5)))
    builder.export_program(lambda module, x: module(x), args=(X,), name="f", strict=False)
    with pytest.warns(UserWarning, match="training mode"):
        aot.export(builder)
