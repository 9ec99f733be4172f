"""`pelton export`: from `package.module:object` to an MLIR file."""

from __future__ import annotations

import argparse
import importlib
import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from pelton.runtime.errors import ExportError, PeltonError
from pelton.runtime.progress import stage

from .inputs import Input, Range, Size, Tensor, add_input_option, array_of
from .options import Subcommands
from .terminal import say

if TYPE_CHECKING:
    from pelton.aot import ExportOutput


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "export",
        help="export a PyTorch program to MLIR",
        description="Export a PyTorch program to MLIR.",
        epilog='example: pelton export zoo.nets:resnet --input "b=1..8x3x224x224xf32" -o m.mlirbc',
    )
    parser.add_argument(
        "program",
        metavar="MODULE:NAME",
        help="an nn.Module, a function of tensors, a class of either, or a function without "
        "required arguments that returns one; modules of the current folder can be named",
    )
    add_input_option(
        parser,
        "[NAME:]SPEC",
        "an argument: SHAPExTYPE whose sizes may be b=1..8 or b=1..4..8 (name=min..opt..max), "
        "1..8, ? or a number, as in b=1..8x3xf32; or @FILE.npy, or a number (fixed)",
    )
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help=".mlirbc or .mlir")
    parser.add_argument(
        "--external-parameters",
        nargs="?",
        const=True,
        metavar="SCOPE",
        help="take the weights from an archive when the program is loaded",
    )
    parser.add_argument("--parameters", metavar="FILE", help="save those weights: .irpa, ...")
    parser.add_argument("--function", metavar="NAME", help="the entry point's name")
    parser.add_argument("--module-name", metavar="NAME", help="the MLIR module's name")
    parser.add_argument("--strict", action="store_true", help="trace in torch.export's strict mode")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Export `args.program` to `args.output`.

    Raises:
        ExportError: The program cannot be found or exported.
        ArtifactError: A file cannot be written.
    """
    if args.parameters and args.external_parameters is None:
        args.external_parameters = True
    out = export_program(
        args.program,
        args.inputs,
        module_name=args.module_name,
        function_name=args.function,
        strict_export=args.strict,
        external_parameters=args.external_parameters,
    )
    out.save_mlir(args.output)
    for signature in out.signatures.values():
        say(f"{args.output}: {signature}")
    if args.parameters:
        path = out.save_parameters(args.parameters)
        say(f"{path}: {decimal(path.stat().st_size)} of parameters")
    return 0


def export_program(spec: str, inputs: Sequence[Input], **options: Any) -> ExportOutput:
    """Export what `package.module:name` names.

    Args:
        spec: The program, as for `load_program`.
        inputs: Its arguments, by position and by name.
        options: Further options of `aot.export`.

    Raises:
        ExportError: The program cannot be found or exported.
    """
    with stage("loading PyTorch"):
        from pelton.aot import export
    program = load_program(spec)
    positional = [given for given in inputs if given.name is None]
    named = {given.name: given for given in inputs if given.name is not None}
    return export(
        program,
        args=[argument_of(given) for given in positional],
        kwargs={name: argument_of(given) for name, given in named.items()},
        dynamic_shapes=_free_sizes(program, positional, named),
        **options,
    )


def load_program(spec: str) -> Any:
    """Return what `package.module:name` names, ready to be exported.

    A class of modules is instantiated. A function that can be called without arguments is called,
    and what it returns is exported, unless that is a value and no program.

    Raises:
        ExportError: There is no such module or name, or making the program failed.
    """
    module_name, colon, path = spec.partition(":")
    if not colon or not module_name or not path:
        raise ExportError(f"{spec!r} is not of the form package.module:name")
    with stage(f"importing {module_name}"):
        found = _call(f"importing {module_name}", importlib.import_module, module_name)
    for part in path.split("."):
        if not hasattr(found, part):
            names = ", ".join(name for name in vars(found) if not name.startswith("_"))
            raise ExportError(f"{spec!r}: there is no {part!r}; there are: {names}")
        found = getattr(found, part)
    with stage(f"making {path}"):
        return _made(found, path)


def _made(found: Any, name: str) -> Any:
    import torch

    is_class = isinstance(found, type)
    if is_class and not issubclass(found, torch.nn.Module):
        return found
    if not is_class and (isinstance(found, torch.nn.Module) or not callable(found)):
        return found
    if not _needs_arguments(found):
        made = _call(f"{name}()", found)
        if isinstance(made, torch.export.ExportedProgram) or callable(made):
            return made
    elif is_class:
        raise ExportError(f"{name}() has required arguments; name a function that makes it")
    return found


def _needs_arguments(function: Any) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return True
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(p.default is p.empty and p.kind not in variadic for p in parameters)


def _call(what: str, function: Any, *args: Any) -> Any:
    """Call code of the user's; a failure of it names the user's line."""
    try:
        return function(*args)
    except PeltonError:
        raise
    except Exception as error:
        from pelton.aot.spec.errors import user_failure

        raise user_failure(what, error) from error


def argument_of(given: Input) -> Any:
    """Return what `export` takes for an input: a spec, an example, or a constant."""
    import torch

    from pelton.aot.spec.inputs import DimensionInputInfo, InputInfo

    value = given.value
    if isinstance(value, Path):
        array = array_of(given)
        return torch.from_numpy(array)
    if isinstance(value, Range):
        return DimensionInputInfo((value.min, value.opt, value.max))
    if not isinstance(value, Tensor):
        return value
    if value.values is not None:
        raise ExportError(f"--input {given.text}: export takes types and sizes, no values")
    sizes = [_FREE_EXAMPLE if size is None else _info_size(size) for size in value.sizes]
    return InputInfo(sizes, getattr(torch, value.dtype.name))


_FREE_EXAMPLE = 3
"""Example of a size without bounds; programs seldom treat it in a way of its own."""


def _info_size(size: int | Range) -> Any:
    from pelton.aot.spec.inputs import NamedDimension

    if isinstance(size, int):
        return size
    if size.name is not None:
        return NamedDimension(size.name, size.min, size.opt, size.max)
    return (size.min, size.opt, size.max)


def _free_sizes(program: Any, positional: Sequence[Input], named: dict[str, Input]) -> Any:
    """Return the `dynamic_shapes` for sizes that are given as `?`; None where there are none."""
    if not any(_free_axes(given) for given in (*positional, *named.values())):
        return None
    if not named:
        return [_free_axes(given) for given in positional]
    target = getattr(program, "forward", program)
    try:
        bound = inspect.signature(target).bind(*positional, **named).arguments
    except TypeError:
        return None  # `export` says how the arguments do not fit
    return {name: _entry(value) for name, value in bound.items()}


def _entry(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_entry(each) for each in value]
    if isinstance(value, dict):
        return {name: _entry(each) for name, each in value.items()}
    return _free_axes(value)


def _free_axes(given: Input) -> dict[int, Any] | None:
    import torch

    if not isinstance(given.value, Tensor):
        return None
    sizes: tuple[Size, ...] = given.value.sizes
    return {i: torch.export.Dim.DYNAMIC for i, size in enumerate(sizes) if size is None} or None
