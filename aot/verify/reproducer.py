"""Reproducers: a script that shows one operator's wrong result, with its inputs beside it."""

from __future__ import annotations

import operator
import tempfile
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.fx import Node

from pelton.runtime.archive import write_archive
from pelton.runtime.archive.parameter import parameter_of
from pelton.runtime.executable import load
from pelton.runtime.files import atomic_write

from ..compat.operators import OpOverload
from ..ir.elements import dtype_row
from ..ir.exported import ExportedModule
from ..ir.module import write_module
from ..lowering.program_module import module_of_callable
from ..raising.fx import Raised
from ..spec.errors import PeltonError
from .difference import difference
from .options import Numerics
from .reexported import Build, Decompositions

_SCRIPT = '''"""{operator} differs from PyTorch when compiled for {target}: exits with 1."""

import sys
from pathlib import Path

import torch

from pelton import aot, runtime

folder = Path(__file__).parent
archive = aot.ParameterArchive(folder / "inputs.safetensors")
inputs = [archive[name].as_tensor().clone() for name in {names}]


def program({names_joined}):
    return {expression}


with torch.no_grad():
    expected = program(*inputs)
# module.mlir is what aot.export(program, args=inputs) gave{dynamic}.
aot.export(folder / "module.mlir").compile(folder / "module.vmfb", target={target!r})
actual = runtime.load(folder / "module.vmfb")(*inputs)
print("wanted:", expected)
print("got:   ", actual)
close = torch.allclose(
    actual.to(torch.complex128), expected.to(torch.complex128), {tolerance!r}, 1e-6, equal_nan=True
)
sys.exit(0 if close else 1)
'''


@dataclass(frozen=True)
class OpCase:
    """One call of an operator, with all that it was called with.

    Attributes:
        target: The operator.
        args: Its arguments; tensors are numbered by `_Input`.
        kwargs: Its keyword arguments.
        inputs: The tensors.
    """

    target: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    inputs: Sequence[torch.Tensor]

    @staticmethod
    def of(
        node: Node,
        values: Mapping[Node, torch.Tensor],
        program: Raised,
        inputs: Sequence[Any],
    ) -> OpCase | None:
        """Return the call of a node; None for one that is not of tensors and plain values.

        Args:
            node: The call.
            values: The tensors that calls of the graph gave.
            program: The graph.
            inputs: Its inputs.
        """
        placeholders = [n for n in program.graph_module.graph.nodes if n.op == "placeholder"]
        known: dict[Node, Any] = dict(zip(placeholders, inputs, strict=True))
        known.update(values)
        numbers = _Numbers(program, known)
        tensors: list[torch.Tensor] = []

        def take(argument: Node) -> Any:
            value = numbers.value(argument)
            if not isinstance(value, torch.Tensor):
                return value
            tensors.append(value.detach().clone())
            return _Input(len(tensors) - 1)

        try:
            args = torch.fx.node.map_arg(node.args, take)
            kwargs = torch.fx.node.map_arg(node.kwargs, take)
        except LookupError:
            return None
        plain = isinstance(node.target, OpOverload) or node.target is operator.getitem
        return OpCase(node.target, tuple(args), dict(kwargs), tensors) if plain else None

    def expression(self) -> str:
        """Return the call as Python."""
        args = [_python(argument) for argument in self.args]
        args += [f"{name}={_python(value)}" for name, value in self.kwargs.items()]
        return f"torch.ops.{self.target}({', '.join(args)})"

    def function(self) -> Any:
        """Return the call as a function of its tensors."""

        def program(*inputs: torch.Tensor) -> Any:
            def put(value: Any) -> Any:
                if isinstance(value, _Input):
                    return inputs[value.index]
                if isinstance(value, (list, tuple)):
                    return [put(item) for item in value]
                return value

            kwargs = {name: put(value) for name, value in self.kwargs.items()}
            return self.target(*(put(argument) for argument in self.args), **kwargs)

        return program


@dataclass(frozen=True)
class _Input:
    """Stands for a tensor among arguments."""

    index: int

    def __repr__(self) -> str:
        return f"x{self.index}"


class _Numbers:
    """The values of nodes that are no tensors, such as sizes, computed where they are needed."""

    def __init__(self, program: Raised, known: dict[Node, Any]) -> None:
        self._module = program.graph_module
        self._known = known

    def value(self, node: Node) -> Any:
        """Return the value of a node.

        Raises:
            LookupError: It is a graph, or comes from one.
        """
        if node not in self._known:
            if node.op == "get_attr":
                found = operator.attrgetter(str(node.target))(self._module)
                if not isinstance(found, torch.Tensor):
                    raise LookupError(node)
            elif isinstance(node.target, (OpOverload, types.BuiltinFunctionType)):
                args = torch.fx.node.map_arg(node.args, self.value)
                found = node.target(*args)
            else:
                raise LookupError(node)
            self._known[node] = found
        return self._known[node]


def _python(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_python, value))}]"
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    if isinstance(value, float) and value != value:
        return "float('nan')"
    if value in (float("inf"), float("-inf")) and isinstance(value, float):
        return f"float('{value}')"
    return repr(value)


@dataclass(frozen=True)
class IsolatedBuild:
    """How a case is compiled on its own.

    Attributes:
        build: Compiles modules as the artifact was compiled.
        options: The tolerances.
        target: What is compiled for.
        decompositions: The table that the program was exported with.
    """

    build: Build
    options: Numerics
    target: str
    decompositions: Decompositions = None


def reproduce(case: OpCase, how: IsolatedBuild, folder: Path) -> Path | None:
    """Write a script that shows the case; None where alone it is right.

    Args:
        case: The call.
        how: How it is compiled.
        folder: Where to write `reproduce.py`, `inputs.safetensors` and `module.mlir`.
    """
    if not case.inputs or not isinstance(case.target, OpOverload):
        return None
    for dynamic in (False, True):
        try:
            out = _differs(case, how, dynamic)
        except PeltonError:
            continue
        if out is not None:
            return _write(case, how, folder, dynamic, out)
    return None


def _differs(case: OpCase, how: IsolatedBuild, dynamic: bool) -> ExportedModule | None:
    """Return the module of the case where it computes something else; None: it is right."""
    wanted = case.function()(*case.inputs)
    if not isinstance(wanted, torch.Tensor):
        return None
    shapes = [dict.fromkeys(range(x.dim()), torch.export.Dim.AUTO) for x in case.inputs]
    out = module_of_callable(
        case.function(), case.inputs, (tuple(shapes),) if dynamic else None, how.decompositions
    )
    with tempfile.TemporaryDirectory(prefix="pelton-bisect-") as name:
        path = Path(name, "alone.vmfb")
        how.build(out, path)
        got = load(path)(*case.inputs)
    return out if difference(wanted, got, how.options).problem else None


def _write(
    case: OpCase, how: IsolatedBuild, folder: Path, dynamic: bool, out: ExportedModule
) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"x{index}" for index in range(len(case.inputs))]
    parameters = [parameter_of(n, x.contiguous()) for n, x in zip(names, case.inputs, strict=True)]
    write_archive(folder / "inputs.safetensors", parameters)
    write_module(out.module_op, folder / "module.mlir")
    result = case.function()(*case.inputs)
    text = _SCRIPT.format(
        operator=case.target,
        target=how.target,
        names=names,
        names_joined=", ".join(names),
        expression=case.expression(),
        dynamic=", with all sizes dynamic" if dynamic else "",
        tolerance=how.options.tolerance(dtype_row(result.dtype, "the result")),
    )
    path = folder / "reproduce.py"
    with atomic_write(path) as file:
        file.write(text.encode())
    return path
