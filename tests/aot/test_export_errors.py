"""What cannot be exported: one error that says which object, what, and the user's line."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch
from torch import nn

from pelton import aot, runtime

from ..programs import assert_same

X = torch.randn(2, 3)


@pytest.mark.parametrize("thing", [3, None, nn.Linear, [nn.Linear(1, 1)], torch.zeros(2)])
def test_an_unknown_kind_of_object_is_a_type_error_that_lists_the_kinds(thing: object) -> None:
    with pytest.raises(TypeError, match=r"not a supported type; pass an nn\.Module instance"):
        aot.export(thing, X)


def test_arguments_that_do_not_fit_name_the_function_and_its_parameters() -> None:
    with pytest.raises(aot.ExportError, match=r"Linear\.forward\(.*missing a required argument"):
        aot.export(nn.Linear(3, 2))
    with pytest.raises(aot.ExportError, match=r"got an unexpected keyword argument 'y'"):
        aot.export(nn.Linear(3, 2), args=(X,), kwargs={"y": X})


def test_two_forms_of_positional_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="both given"):
        aot.export(nn.Linear(3, 2), X, args=(X,))


def two_unknown_operators(x: torch.Tensor) -> torch.Tensor:
    y = torch.poisson(x)
    return y + torch.binomial(x, x / 2)


def test_all_operators_without_a_lowering_are_named_with_their_lines() -> None:
    with pytest.raises(aot.UnsupportedOpError) as caught:
        aot.export(two_unknown_operators, X)
    line = two_unknown_operators.__code__.co_firstlineno
    message = str(caught.value)
    assert f"aten.poisson.default (at {__file__}:{line + 1})" in message
    assert f"aten.binomial.default (at {__file__}:{line + 2})" in message
    assert len(caught.value.operators) == 2


def branching_on_a_value(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x
    return -x


def test_a_branch_on_a_value_is_refused_at_its_line_with_what_to_use() -> None:
    with pytest.raises(aot.ExportError, match=r"torch\.cond|torch\.where") as caught:
        aot.export(branching_on_a_value, X)
    assert caught.value.location is not None
    assert caught.value.location.line == branching_on_a_value.__code__.co_firstlineno + 1


def test_a_result_of_another_type_is_refused_by_its_place() -> None:
    with pytest.raises(aot.ExportError, match=r"result\['a'\]\[0\] is a object"):
        aot.export(lambda x: {"a": [object()]}, X)


def test_a_sparse_or_quantised_argument_is_refused_by_name() -> None:
    with pytest.raises(aot.ExportError, match=r"argument x is a torch\.sparse_coo tensor"):
        aot.export(lambda x: x, X.to_sparse())


def test_an_exception_of_the_program_keeps_its_words_and_line() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no such luck")

    with pytest.raises(aot.ExportError, match="RuntimeError: no such luck") as caught:
        aot.export(program, X)
    assert caught.value.location is not None
    assert caught.value.location.line == program.__code__.co_firstlineno + 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"module {", "is no valid MLIR"),
        (b"ML\xefR" + bytes(20), "is no valid MLIR"),
        (b"PK\x03\x04" + bytes(40), "is no MLIR module"),
        (b"\x00\x01\x02\x03" * 8, "is no MLIR module|is no valid MLIR"),
    ],
)
def test_a_file_that_is_no_module_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "module.mlir"
    path.write_bytes(content)
    with pytest.raises(aot.ArtifactError, match=message):
        aot.export(path)


def test_a_truncated_module_is_refused_at_every_length(tmp_path: Path) -> None:
    path = tmp_path / "module.mlirbc"
    aot.export(nn.Linear(3, 2), X).save_mlir(path)
    whole = path.read_bytes()
    for length in range(1, len(whole) - 1, len(whole) // 24):
        path.write_bytes(whole[:length])
        with pytest.raises(aot.ArtifactError):
            aot.export(path)


def test_exporting_from_four_threads_at_once_works(tmp_path: Path) -> None:
    failures: list[Exception] = []

    def work(number: int) -> None:
        try:
            model = nn.Sequential(nn.Linear(3, 4 + number), nn.ReLU()).eval()
            path = tmp_path / f"{number}.vmfb"
            aot.export(model, args=(X,), dynamic_shapes=({0: "batch"},)).compile(path)
            assert_same(runtime.load(path)(X), model(X))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
