"""Contract of the interpreter's frames."""

from __future__ import annotations

from pelton.aot.compat.interpreter import calling_frame
from tests.contracts import contract


def names_from_here() -> list[str]:
    return [calling_frame().f_code.co_name, calling_frame(1).f_code.co_name]


@contract("sys._getframe", breaks="the user's lines in errors, traces and MLIR locations")
def test_frames_are_those_of_the_function_and_its_callers() -> None:
    assert names_from_here() == [
        "names_from_here",
        "test_frames_are_those_of_the_function_and_its_callers",
    ]
    frame = calling_frame()
    assert frame.f_code.co_filename == __file__ and frame.f_back is not None
