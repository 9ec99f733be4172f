"""`pelton run`: call a compiled module; needs neither PyTorch nor a compiler."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pelton.runtime import Function, load
from pelton.runtime.archive.parameter import parameter_of
from pelton.runtime.call import pytrees
from pelton.runtime.call.signature import ConstantSpec, Leaf, Signature, TensorSpec
from pelton.runtime.errors import SignatureError
from pelton.runtime.files import atomic_write
from pelton.runtime.progress import stage

from .inputs import HELP, Input, Range, Tensor, add_input_option, array_of
from .options import Subcommands
from .parameters import add_parameters_option, parameters_of


def add_parser(subparsers: Subcommands) -> None:
    """Add the subcommand to the command line."""
    parser = subparsers.add_parser(
        "run",
        help="call a compiled module",
        description="Call a compiled module and print its results.",
        epilog="example: pelton run m.vmfb --input 2x4xf32=1.5 --input @x.npy --output @y.npy",
    )
    parser.add_argument("artifact", metavar="FILE", help="what pelton compile wrote")
    parser.add_argument("--function", metavar="NAME", help="the entry point, if there are several")
    add_input_option(
        parser,
        "[NAME:]VALUE",
        HELP,
    )
    parser.add_argument(
        "--output",
        dest="outputs",
        type=_output,
        action="append",
        default=[],
        metavar="@FILE.npy",
        help="where a result goes, in their order; other results are printed",
    )
    add_parameters_option(parser)
    parser.add_argument("--device", help="what to run on, as pelton devices lists it")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Call a function of `args.artifact`; print or save its results.

    Raises:
        PeltonError: The artifact cannot be loaded, or the inputs do not fit it.
    """
    with stage(f"loading {args.artifact}"):
        parameters = parameters_of(args.parameters)
        executable = load(args.artifact, device=args.device, parameters=parameters)
    function = _function(executable.functions, args.function)
    leaves = _leaves(function.signature, args.inputs)
    positional, named = function.signature.call_form(leaves)
    with stage(f"running {function.name}"):
        result = function(*positional, **named)
    _emit(function.signature, result, args.outputs)
    return 0


def _function(functions: Mapping[str, Function], name: str | None) -> Function:
    if name is None and len(functions) == 1:
        return next(iter(functions.values()))
    if name is None or name not in functions:
        problem = f"there is no entry point {name!r}" if name else "there are several entry points"
        raise SignatureError(f"{problem}; --function takes one of: {', '.join(functions)}")
    return functions[name]


def _output(text: str) -> Path:
    if not text.startswith("@") or len(text) == 1:
        raise argparse.ArgumentTypeError(f"expected @FILE.npy, got {text!r}")
    return Path(text[1:])


def _leaves(signature: Signature, inputs: Sequence[Input]) -> list[Any]:
    """Return a value for each input at run time, in order."""
    paths = signature.input_paths()
    leaves: dict[int, Any] = {}
    open_ = [i for i, leaf in enumerate(signature.inputs) if not isinstance(leaf, ConstantSpec)]
    for given in inputs:
        index = paths.index(given.name) if given.name in paths else None
        if given.name is None and open_:
            index = open_[0]
        if index not in open_:
            raise SignatureError(f"--input {given.text} is for nothing: {_expected(signature)}")
        open_.remove(index)
        leaves[index] = _value(given, signature.inputs[index])
    if open_:
        missing = ", ".join(paths[index] for index in open_)
        raise SignatureError(f"there is no --input for {missing}: {_expected(signature)}")
    return [leaves[index] for index in sorted(leaves)]


def _expected(signature: Signature) -> str:
    return f"the function is {signature}"


def _value(given: Input, leaf: Leaf) -> Any:
    if isinstance(given.value, Range):
        raise SignatureError(f"--input {given.text}: a call takes a number, not a range")
    if isinstance(given.value, (Tensor, Path)):
        return array_of(given, leaf.dtype if isinstance(leaf, TensorSpec) else None)
    return given.value


def _emit(signature: Signature, result: Any, outputs: Sequence[Path]) -> None:
    """Save as many results as there are files for, and print the others."""
    leaves: list[Any] = [None] * len(signature.results)
    pytrees.flatten(signature.result_tree, result, leaves, "result")
    if len(outputs) > len(leaves):
        raise SignatureError(f"there are {len(leaves)} results for {len(outputs)} --output")
    paths = pytrees.leaf_paths(signature.result_tree, "result")
    for index, (leaf, spec) in enumerate(zip(leaves, signature.results, strict=True)):
        # Results of a call without tensors may be torch's; this reads tensors of any library.
        value = parameter_of("result", leaf).array() if isinstance(spec, TensorSpec) else leaf
        if index < len(outputs):
            with atomic_write(outputs[index]) as file:
                np.save(file, value, allow_pickle=False)
        elif isinstance(spec, TensorSpec):
            shape = ", ".join(map(str, value.shape))
            print(f"{paths[index]}: {spec.dtype}[{shape}]")
            print(np.array2string(value, max_line_width=100, precision=6))
        else:
            print(f"{paths[index]}: {value!r}")
