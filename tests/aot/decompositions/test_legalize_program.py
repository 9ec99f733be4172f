"""Programs prepared for the importer, and errors that name the operator."""

import pytest
import torch

from pelton import aot
from pelton.aot.decompositions.legalize_program import _decomposition_error, legalize_program

aten = torch.ops.aten


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def test_the_given_program_is_not_modified():
    program = torch.export.export(Model(), (torch.ones(2),), strict=False)
    before = str(program.graph)
    prepared = legalize_program(program)
    assert str(program.graph) == before
    assert prepared is not program


def test_a_failing_decomposition_names_its_operator_and_reason():
    program = torch.export.export(Model(), (torch.ones(2),), strict=False)

    def fails(x):
        raise ValueError("no   such\nform")

    with pytest.raises(aot.UnsupportedOpError, match=r"aten\.relu.*no such form") as caught:
        legalize_program(program, {aten.relu.default: fails})
    assert caught.value.operators == ("aten.relu.default",)


@pytest.mark.parametrize(
    ("text", "message", "operators"),
    [
        (
            "too large While executing x[target=torch.ops.aten.svd.default]",
            "aten.svd.default cannot be decomposed: too large", ("aten.svd.default",),
        ),
        ("unclear", "an operator cannot be decomposed: unclear", ()),
        ("", "an operator cannot be decomposed: ValueError", ()),
    ],
)  # fmt: skip
def test_messages_of_failures(text, message, operators):
    error = _decomposition_error(ValueError(text))
    assert message in str(error) and error.operators == operators


def test_our_own_errors_pass_through():
    program = torch.export.export(Model(), (torch.ones(2),), strict=False)

    def refuses(x):
        raise aot.ExportError("refused")

    with pytest.raises(aot.PeltonError):
        legalize_program(program, {aten.relu.default: refuses})


def test_a_write_through_windows_is_refused_at_its_line() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        y.unfold(0, 1, 2)[:1].add_(7)
        return y

    with pytest.raises(aot.UnsupportedOpError, match="a write in place through unfold") as raised:
        aot.export(program, args=(torch.ones(5, 3),))
    assert raised.value.location is not None
    assert raised.value.location.line == program.__code__.co_firstlineno + 2


def test_a_copy_of_windows_may_be_written() -> None:
    out = aot.export(lambda x: x.unfold(0, 1, 2).clone().add_(7), args=(torch.ones(5, 3),))
    assert "aten.add" in str(out.mlir_module)


@pytest.mark.parametrize(
    ("change", "found"),
    [(lambda x: x.double(), r"float64\[2, 3\]"), (lambda x: x[:1], r"float32\[1, 3\]")],
)  # fmt: skip
def test_a_result_of_another_type_or_size_is_refused(change, found) -> None:
    """A decomposition changes it, as some of torch's do."""
    program = torch.export.export(Model(), (torch.ones(2, 3),), strict=False)
    table = {aten.relu.default: lambda x: change(x * 1)}
    with pytest.raises(
        aot.UnsupportedOpError, match=rf"float32\[2, 3\] by.* but {found}"
    ) as caught:
        legalize_program(program, table)
    assert caught.value.location is not None


def test_what_torch_export_declares_is_kept_or_refused() -> None:
    gradient, x = torch.arange(4), torch.rand(4)
    with pytest.raises(aot.UnsupportedOpError, match=r"threshold_backward.* is int64"):
        aot.export(lambda g, x: aten.threshold_backward(g, x, 0.5), args=(gradient, x))
