"""Lines of the program on the operators of a trace: the user's files, outermost first."""

from __future__ import annotations

import re

import torch

from pelton.aot.capture.stack_traces import program_lines
from pelton.aot.capture.trace import capture

X = torch.ones(2, 3)


def outer(x: torch.Tensor) -> torch.Tensor:
    return inner(x) * 2


def inner(x: torch.Tensor) -> torch.Tensor:
    return x.sin()


def lines_of(function, name: str) -> list[int]:
    captured = capture(function, (X,), {})
    (node,) = [n for n in captured.program.graph.nodes if name in str(n.target)]
    files = re.findall(r'File "(.*)", line (\d+)', node.meta["stack_trace"])
    assert {file for file, _ in files} == {__file__}
    return [int(line) for _, line in files]


def test_operators_have_the_lines_of_all_callers() -> None:
    first, second = outer.__code__.co_firstlineno + 1, inner.__code__.co_firstlineno + 1
    assert lines_of(outer, "sin") == [first, second]
    assert lines_of(outer, "mul") == [first]


def test_frames_of_torch_are_left_out() -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Sigmoid())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layers(x)

    assert lines_of(Net(), "sigmoid") == [Net.forward.__code__.co_firstlineno + 1]


def test_torch_notes_its_own_stacks_again_afterwards() -> None:
    import torch.fx.proxy

    before = (torch.fx.proxy.CapturedTraceback, torch.fx.proxy.TracerBase._filter_traceback_frames)
    with program_lines(outer.__code__):
        assert torch.fx.proxy.CapturedTraceback is not before[0]
    after = (torch.fx.proxy.CapturedTraceback, torch.fx.proxy.TracerBase._filter_traceback_frames)
    assert after == before


def test_outside_of_the_adapter_there_are_no_lines() -> None:
    import torch.fx.proxy

    def adapter() -> list[str]:
        return torch.fx.proxy.CapturedTraceback.extract().summary().format()

    with program_lines(adapter.__code__):
        assert torch.fx.proxy.CapturedTraceback.extract().summary() == []
        assert adapter() == []
    with program_lines(test_outside_of_the_adapter_there_are_no_lines.__code__):
        (line,) = adapter()
    assert line.startswith(f'  File "{__file__}", line ') and line.endswith("in adapter\n")
