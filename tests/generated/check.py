"""Checks of generated programs: many compiled at a time, and compared with eager PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pelton import aot, runtime

from .programs import Program, inputs_of_size, sizes

_TOLERANCE = 1e-3
_TIMEOUT_S = 300
_ROWS = aot.NamedDimension("rows", 2, 5, 64)


@dataclass(frozen=True)
class Outcome:
    """What came of a program.

    Attributes:
        kind: `right`, `wrong`, `failed` (compiled or called with an error), `refused` (not
            exported), or `untraced` (torch.export does not take it either).
        text: What was wrong, or the message.
    """

    kind: str
    text: str = ""


class _Nothing(nn.Module):
    pass


class _Whole(nn.Module):
    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program

    def forward(self, x: Tensor, i: Tensor, b: Tensor) -> tuple[Tensor, ...]:
        return self.program(x, i, b)


def check(programs: Sequence[Program], *, level: int | None = None) -> list[Outcome]:
    """Compile programs into one module and compare each with eager.

    Where they do not compile together, each half is compiled.

    Args:
        programs: The programs.
        level: The optimisation level; None: the default.
    """
    if not programs:
        return []
    try:
        executable = _compiled(programs, level)
    except (aot.PeltonError, RuntimeError) as error:
        if len(programs) == 1:
            return [_failure(programs[0], error)]
        half = len(programs) // 2
        return check(programs[:half], level=level) + check(programs[half:], level=level)
    return [
        _compare(program, getattr(executable, f"p{number}"))
        for number, program in enumerate(programs)
    ]


def _compiled(programs: Sequence[Program], level: int | None) -> runtime.Executable:
    builder = aot.FxProgramsBuilder(_Nothing())
    for number, program in enumerate(programs):
        builder.export_program(
            lambda module, x, i, b, program=program: program(x, i, b),
            args=_arguments(program),
            strict=False,
            name=f"p{number}",
        )
    output = aot.export(builder)
    options = {} if level is None else {"optimization_level": level}
    binary = output.compile(cache_dir=None, timeout_s=_TIMEOUT_S, **options)
    return runtime.load(bytes(binary.map_memory()))


def _arguments(program: Program) -> list[Any]:
    given = inputs_of_size(sizes(dynamic=program.dynamic)[0])
    if not program.dynamic:
        return list(given)
    return [aot.InputInfo((_ROWS, *value.shape[1:]), value.dtype) for value in given]


def _failure(program: Program, error: Exception) -> Outcome:
    text = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    if isinstance(error, aot.CompileError):
        return Outcome("failed", text)
    given = inputs_of_size(sizes(dynamic=program.dynamic)[0])
    rows = torch.export.Dim("rows", min=2, max=64)
    dynamic = ({0: rows},) * len(given) if program.dynamic else None
    try:
        torch.export.export(_Whole(program), given, dynamic_shapes=dynamic).run_decompositions({})
    except Exception:
        return Outcome("untraced", text)
    return Outcome("refused", text)


def _compare(program: Program, run: Any) -> Outcome:
    for size in sizes(dynamic=program.dynamic):
        given = inputs_of_size(size)
        kept = [value.clone() for value in given]
        want = program(*given)
        for call in (1, 2):
            try:
                got = run(*given)
            except aot.PeltonError as error:
                return Outcome("failed", f"size {size}, call {call}: {error}"[:300])
            results = zip(got, want, program.inexact, strict=True)
            for number, (result, wanted, inexact) in enumerate(results):
                problem = _difference(result, wanted, inexact=inexact)
                if problem:
                    return Outcome("wrong", f"size {size}, call {call}, result {number}: {problem}")
            if not all(map(torch.equal, given, kept)):
                return Outcome("wrong", f"size {size}: an argument was changed")
    return Outcome("right")


def _difference(got: Tensor, want: Tensor, *, inexact: bool) -> str:
    if got.shape != want.shape or got.dtype != want.dtype:
        return f"{got.dtype} of {tuple(got.shape)} for {want.dtype} of {tuple(want.shape)}"
    if inexact and want.is_floating_point():
        close = torch.allclose(got, want, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
    else:
        close = torch.equal(torch.nan_to_num(got), torch.nan_to_num(want))
    return "" if close else f"{got.flatten()[:8].tolist()} for {want.flatten()[:8].tolist()}"


def quietly(programs: Sequence[Program], *, level: int | None = None) -> list[Outcome]:
    """Check programs without the warnings of torch about what they do."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check(programs, level=level)
