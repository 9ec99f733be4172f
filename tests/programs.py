"""What tests of exported programs share: the way through files, and comparison with eager."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from torch.utils._pytree import tree_flatten

from pelton import aot, runtime


def through_files(
    out: aot.ExportOutput, folder: Path, *, parameters: Any = None, **options: Any
) -> runtime.Executable:
    """Save a module, load it, compile what was loaded, and load that: nothing stays in memory."""
    out.save_mlir(folder / "module.mlirbc")
    aot.export(folder / "module.mlirbc").compile(folder / "module.vmfb", **options)
    return runtime.load(folder / "module.vmfb", parameters=parameters)


def compiled(
    folder: Path, program: Any, args: Sequence[Any] = (), **export_options: Any
) -> runtime.Executable:
    """Export a program, and bring it through files."""
    return through_files(aot.export(program, args=tuple(args), **export_options), folder)


def check_ir(out: aot.ExportOutput, expectations: str) -> None:
    """Match CHECK lines (of LLVM's FileCheck) against the text of a module."""
    check_text(str(out.mlir_module), expectations)


def check_text(text: str, expectations: str) -> None:
    """Match CHECK lines (of LLVM's FileCheck) against a text, such as that of an operation."""
    options = Options(match_filename="module", check_prefixes=["CHECK"])
    parser = Parser(options, io.StringIO(expectations), *pattern_for_opts(options))
    assert Matcher(options, FInput("module", text), parser).run() == 0, text


def assert_same(actual: Any, expected: Any, *, rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """Compare results of any structure: containers, element types, shapes and values."""
    actual_leaves, actual_tree = tree_flatten(actual)
    expected_leaves, expected_tree = tree_flatten(expected)
    assert actual_tree == expected_tree
    for left, right in zip(actual_leaves, expected_leaves, strict=True):
        if isinstance(right, torch.Tensor):
            torch.testing.assert_close(left, right.detach(), rtol=rtol, atol=atol, equal_nan=True)
        elif isinstance(right, np.ndarray):
            np.testing.assert_allclose(left, right, rtol=rtol, atol=atol)
        elif isinstance(right, float):
            assert left == right or abs(left - right) <= atol + rtol * abs(right)
        else:
            assert type(left) is type(right)
            assert left == right


def assert_equals_eager(
    executable: Callable[..., Any],
    program: Callable[..., Any],
    *calls: Sequence[Any],
    **tolerance: float,
) -> None:
    """Compare an executable with eager torch for several argument tuples."""
    for args in calls:
        with torch.no_grad():
            assert_same(executable(*args), program(*args), **tolerance)
