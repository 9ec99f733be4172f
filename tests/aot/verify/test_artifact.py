"""Verification of artifacts: from the file to the report, and to the search for a fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pelton import aot, runtime
from pelton.aot.raising.fx import Port
from pelton.aot.verify import artifact

BATCH = aot.NamedDimension("batch", 1, 2, 4)
LENGTH = aot.NamedDimension("length", 1, 5, 9)


class Tokens(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(37, 8)
        self.head = torch.nn.Linear(8, 3)

    def forward(self, tokens: torch.Tensor, scale: float = 2.0) -> dict[str, Any]:
        found = self.head(self.table(tokens.long())) * scale
        return {"scores": found, "best": found.argmax(-1), "scale": scale}


class Counter(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.full((4,), 3.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(x.sum(0))
        return x + self.total


def rows(width: int = 4) -> aot.InputInfo:
    return aot.InputInfo((BATCH, width), torch.float32)


def tokens() -> aot.ExportOutput:
    return aot.export(MODULE, args=[aot.InputInfo((BATCH, LENGTH), torch.int32)])


MODULE = Tokens().eval()


def test_a_right_program_agrees_at_every_size() -> None:
    report = tokens().verify(numerics=True)
    assert report.passed
    assert report.reference == "eager PyTorch"
    tried = {tuple(found.sizes.values.values()) for found in report.comparisons}
    assert {(1, 1), (2, 5), (4, 9), (3, 3), (1, 5), (2, 9)} <= tried
    assert {str(found.filling) for found in report.comparisons} == {
        "random 0", "random 1", "random 2", "zeros", "edges",
    }  # fmt: skip


def test_integers_that_index_a_table_are_tried_over_all_of_it() -> None:
    report = tokens().verify(numerics=True)
    assert report.notes == ("main(): tokens in (0, 36) (all of the table that it indexes)",)


def test_the_range_of_integers_can_be_given() -> None:
    report = tokens().verify(numerics=aot.Numerics(integers={"tokens": (3, 5)}))
    assert report.notes == ("main(): tokens in (3, 5) (as asked)",)


def test_integers_that_eager_refuses_are_not_tried() -> None:
    table = torch.arange(12.0)
    out = aot.export(lambda i: table[i + 1], args=[aot.InputInfo((BATCH,), torch.int64)])
    report = out.verify(numerics=True)
    assert report.passed
    assert report.notes == ("main(): i in (0, 9) (PyTorch accepts it)",)


def test_a_range_for_something_else_is_refused() -> None:
    with pytest.raises(aot.ExportError, match="'token' is no integer input; there are: tokens"):
        tokens().verify(numerics=aot.Numerics(integers={"token": (3, 5)}))


def test_state_is_compared_and_left_as_it_was(tmp_path: Path) -> None:
    module = Counter()
    out = aot.export(module, args=[rows()])
    report = out.verify(numerics=True)
    assert {found.result for found in report.comparisons} == {"result", "state total"}
    assert torch.equal(module.total, torch.full((4,), 3.0))


def test_wrong_state_is_found(tmp_path: Path) -> None:
    class Forgetful(Counter):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x.sum(0) * 0.5)
            return x + self.total + x.sum(0) * 0.5

    module = Forgetful()
    out = aot.export(module, args=[rows()])
    with pytest.raises(aot.NumericsError) as caught:
        out.verify(numerics=aot.Numerics(seeds=[0], special_values=False), against=Counter())
    failed = {found.result for found in caught.value.report.comparisons if not found.passed}
    assert failed == {"state total"}


def test_without_the_model_the_module_itself_is_run(tmp_path: Path) -> None:
    tokens().save_mlir(tmp_path / "m.mlirbc")
    report = aot.export(tmp_path / "m.mlirbc").verify(numerics=True)
    assert report.reference == "the exported module in PyTorch"
    assert report.passed


def test_an_artifact_is_compared_with_any_model(tmp_path: Path) -> None:
    out = tokens()
    out.compile(tmp_path / "m.vmfb")
    assert out.verify(numerics=True, artifact=tmp_path / "m.vmfb", against=MODULE).passed
    with pytest.raises(aot.NumericsError) as caught:
        out.verify(numerics=True, artifact=tmp_path / "m.vmfb", against=Tokens().eval())
    assert str(caught.value).startswith(f"{tmp_path / 'm.vmfb'} differs from eager PyTorch in ")
    worst = caught.value.report.worst
    assert worst is not None and not worst.passed


def test_an_artifact_of_another_interface_is_refused(tmp_path: Path) -> None:
    aot.export(lambda x: x, args=[rows(3)]).compile(tmp_path / "m.vmfb")
    out = aot.export(lambda x: x + 1, args=[rows()])
    with pytest.raises(aot.ArtifactError, match="is not compiled from this module: it has main"):
        out.verify(numerics=True, artifact=tmp_path / "m.vmfb")


def test_external_parameters_are_those_of_the_export() -> None:
    module = torch.nn.Linear(4, 2)
    out = aot.export(module, args=[rows()], external_parameters=True)
    assert out.verify(numerics=True).passed


def test_several_entry_points_are_compared() -> None:
    class Pair(aot.CompiledModule):
        total = aot.export_global(aot.AbstractTensor(2), mutable=True, uninitialized=False)

        def add(self, x=aot.AbstractTensor(2)):  # type: ignore[no-untyped-def]
            self.total = self.total + x
            return self.total

        def double(self, x=aot.AbstractTensor(None, 2)):  # type: ignore[no-untyped-def]
            return x + x

    report = aot.export(Pair).verify(numerics=True)
    assert {found.function for found in report.comparisons} == {"add", "double"}
    assert "state total" in {found.result for found in report.comparisons}


def test_sizes_that_eager_refuses_are_left_out_and_noted() -> None:
    def halves(x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_exporting():
            return x + 1
        if x.shape[0] == 4:
            raise ValueError("not four")
        return x + 1

    report = aot.export(halves, args=[rows()]).verify(numerics=True)
    assert report.passed
    assert any("at max (batch=4)" in n and "not four" in n for n in report.notes)


def test_a_program_that_eager_never_takes_cannot_be_verified() -> None:
    def never(x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting():
            raise ValueError("never")
        return x + 1

    with pytest.raises(aot.ExportError, match=r"nothing could be compared: .*never"):
        aot.export(never, args=[rows()]).verify(numerics=True)


def test_random_results_are_noted_and_not_compared() -> None:
    def noisy(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + 1, x + torch.rand(4) if not torch.compiler.is_exporting() else x

    report = aot.export(noisy, args=[rows()]).verify(numerics=True)
    assert report.notes == ("results [1] are random and were not compared",)
    assert {found.result for found in report.comparisons} == {"result[0]"}


def test_inputs_beyond_the_memory_limit_are_left_out() -> None:
    wide = aot.InputInfo(((1, 2, 1000), 1000), torch.float32)
    options = aot.Numerics(memory_limit_bytes=1 << 20)
    report = aot.export(lambda x: x + 1, args=[wide]).verify(numerics=options)
    assert "main() at max (x_dim0=1000) left out: its inputs take 4 MiB" in report.notes


def test_nothing_is_compared_unless_asked_for() -> None:
    report = tokens().verify()
    assert (report.passed, len(report.comparisons)) == (True, 0)


def test_the_table_has_the_worst_call_of_each_result_and_size() -> None:
    lines = str(tokens().verify(numerics=True)).splitlines()
    assert lines[0] == (
        "the module compiled for cpu against eager PyTorch: agrees, "
        f"{len(tokens().verify(numerics=True).comparisons)} comparisons"
    )
    assert lines[1].split() == ["function", "sizes", "result", "absolute", "relative", "inputs"]
    assert sum("opt (batch=2, length=5)" in line for line in lines) == 3


# compile(check=True)


def wrong_relu(x: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x)


def wrong() -> aot.ExportOutput:
    table = {**aot.current_aot_decompositions(), torch.ops.aten.relu.default: wrong_relu}
    return aot.export(RELU, args=[rows()], decompositions=table)


RELU = torch.nn.ReLU()


def test_a_checked_compile_keeps_a_right_artifact(tmp_path: Path) -> None:
    aot.export(RELU, args=[rows()]).compile(tmp_path / "m.vmfb", check=True)
    assert torch.equal(runtime.load(tmp_path / "m.vmfb")(-torch.ones(1, 4)), torch.zeros(1, 4))


def test_a_checked_compile_leaves_no_wrong_artifact(tmp_path: Path) -> None:
    with pytest.raises(aot.NumericsError, match=r"m\.vmfb differs from eager PyTorch"):
        wrong().compile(tmp_path / "m.vmfb", check=True)
    with pytest.raises(aot.NumericsError):
        wrong().compile(check=aot.Numerics(seeds=[0], special_values=False))
    assert list(tmp_path.iterdir()) == []


def test_a_checked_function_is_compared_before_it_is_returned() -> None:
    doubled = aot.compile(lambda x, factor: x * factor, args=[rows(), 2.0], check=True)
    assert torch.equal(doubled(torch.ones(1, 4)), torch.full((1, 4), 2.0))


@pytest.mark.parametrize("given", [1, "yes", None])
def test_what_is_no_option_is_refused(given: Any) -> None:
    with pytest.raises(aot.ExportError, match=r"expected True, False or aot\.Numerics"):
        aot.export(RELU, args=[rows()]).verify(numerics=given)


# What a search for the first operator that differs starts from.


def buffers(**values: torch.Tensor) -> torch.nn.Module:
    outer, inner = torch.nn.Module(), torch.nn.Module()
    outer.add_module("inner", inner)
    for name, value in values.items():
        owner = inner if name.startswith("inner_") else outer
        owner.register_buffer(name.removeprefix("inner_"), value.clone())
    return outer


@pytest.mark.parametrize("order", [("total", "inner.total"), ("inner.total", "total")])
def test_buffers_whose_names_end_alike_get_their_own_state(order: tuple[str, str]) -> None:
    state = {"total": torch.ones(2), "inner.total": torch.full((3,), 5.0)}
    module = buffers(total=torch.zeros(2), inner_total=torch.zeros(3))
    artifact._set_buffers(module, {name: state[name] for name in order})
    assert module.total.tolist() == [1, 1]
    assert module.inner.total.tolist() == [5, 5, 5]


def test_a_buffer_below_a_root_has_the_state_of_its_path() -> None:
    module = torch.nn.Module()
    module.add_module("root", buffers(inner_total=torch.zeros(1), other=torch.zeros(1)))
    state = {"total": torch.tensor([7.0]), "inner.total": torch.tensor([2.0])}
    artifact._set_buffers(module, state)
    assert (module.root.inner.total.item(), module.root.other.item()) == (2, 0)


@pytest.mark.parametrize(
    ("dtype", "scalar", "value", "expected"),
    [
        (torch.int64, True, 3, 3), (torch.float64, True, 0.5, torch.tensor(0.5).double()),
        (torch.bool, True, True, torch.tensor(True)),
    ],
    ids=["int", "float", "bool"],
)  # fmt: skip
def test_numbers_are_given_to_a_graph_as_it_takes_them(
    dtype: torch.dtype, scalar: bool, value: Any, expected: Any
) -> None:
    port = Port("n", "user", "n", dtype, (), is_scalar=scalar)
    found = artifact._as_input(value, port)
    assert type(found) is type(expected)
    assert found == expected
