"""Errors: builtin bases, locations and pickling."""

import pickle

import pytest

from pelton.runtime import errors
from pelton.runtime.errors import CompileError, PeltonError, SourceLocation, UnsupportedOpError

CLASSES = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, PeltonError)
]


@pytest.mark.parametrize(
    ("name", "builtins"),
    [
        ("ExportError", (TypeError, ValueError)),
        ("DynamicShapeError", (TypeError, ValueError)),
        ("UnsupportedOpError", (NotImplementedError, ValueError)),
        ("CompileError", (RuntimeError,)),
        ("SignatureError", (TypeError, ValueError)),
        ("ParameterError", (ValueError,)),
        ("ArtifactError", (ValueError,)),
        ("DeviceError", (RuntimeError,)),
        ("MissingDependencyError", (ImportError,)),
    ],
)
def test_error_is_also_the_builtin_that_fits(name: str, builtins: tuple[type, ...]) -> None:
    for builtin in builtins:
        with pytest.raises(builtin, match="what went wrong"):
            raise getattr(errors, name)("what went wrong")


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_has_a_message_and_no_location_by_default(cls: type[PeltonError]) -> None:
    error = cls("what went wrong")
    assert str(error) == "what went wrong"
    assert error.location is None


@pytest.mark.parametrize("cls", CLASSES)
def test_location_is_part_of_the_message(cls: type[PeltonError]) -> None:
    error = cls("no such operator", location=SourceLocation("model.py", 12))
    assert str(error) == "no such operator (at model.py:12)"
    assert error.location == SourceLocation("model.py", 12)


@pytest.mark.parametrize("cls", CLASSES)
def test_error_crosses_processes(cls: type[PeltonError]) -> None:
    error = cls("no such operator", location=SourceLocation("model.py", 12))
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied), copied.location) == (cls, str(error), error.location)


def test_unsupported_operators_are_kept_apart() -> None:
    assert UnsupportedOpError("two", operators=("aten.a", "aten.b")).operators == (
        "aten.a",
        "aten.b",
    )


def test_compile_error_keeps_diagnostics_and_reproducer() -> None:
    error = CompileError("failed", diagnostics="error: x", reproducer="r.mlir", operators=("a",))
    assert (error.diagnostics, error.reproducer, error.operators) == ("error: x", "r.mlir", ("a",))
