"""Verification of an artifact, from the file to the report."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from pelton.runtime.call.signature import Signature
from pelton.runtime.executable import Executable, load
from pelton.runtime.files import FileKind, StrPath, sniff

from ..capture.eager_program import EagerProgram
from ..ir.exported import ExportedModule
from ..raising.fx import Raised, raise_function
from ..raising.torch_program import open_module, to_torch
from ..spec.errors import ArtifactError, PeltonError
from .bisect import Bisection
from .options import Numerics
from .reexported import Build, eager_program, flat_program
from .reference import RaisedReference, Reference, eager_reference, is_runnable
from .report import FirstDifference, Report
from .run import FailedCall, Run


@dataclasses.dataclass(frozen=True)
class Verification:
    """All that a verification needs.

    Attributes:
        module: The exported module, with the values of its external parameters.
        artifact: The compiled file.
        options: What to try.
        against: What to compare with: a module or function; None: what the module was exported
            from, if that is still there, else the module itself, raised to PyTorch.
        device: What to run on.
        target: What the artifact was compiled for.
        build: Compiles another module in the same way, for bisection.
        name: What the artifact is called in messages.
    """

    module: ExportedModule
    artifact: StrPath
    options: Numerics
    against: Any = None
    device: str | None = None
    target: str = "cpu"
    build: Build | None = None
    name: str = ""

    def report(self) -> Report:
        """Run the artifact and the reference, and compare.

        Raises:
            ArtifactError: The artifact is of another module.
            ExportError: The options do not fit the program, or nothing could be compared.
            UnsupportedOpError: The module cannot be raised to PyTorch, and there is no model.
            ParameterError: External parameters are missing.
        """
        executable = load(self.artifact, device=self.device, parameters=self._to_load())
        self._check_same(executable)
        run = Run(executable, self._references(executable), self.options)
        report = run.report(self.name or str(self.artifact))
        if run.failure is None or self.options.bisect is False or self.build is None:
            return report
        return self._with_first_difference(report, run.failure)

    def _to_load(self) -> Any:
        """Return the parameters to load the artifact with; packages hold theirs."""
        if sniff(self.artifact) is FileKind.TRTM:
            return None
        return self.module.parameters

    def _check_same(self, executable: Executable) -> None:
        """Check that the artifact has the entry points of the module."""
        wanted = {name: _interface(found) for name, found in self._signatures().items()}
        got = {name: _interface(f.signature) for name, f in executable.functions.items()}
        if wanted != got:
            name = next(n for n in (*wanted, *got) if wanted.get(n) != got.get(n))
            raise ArtifactError(
                f"{self.name or self.artifact} is not compiled from this module: it has "
                f"{got.get(name, f'no {name}')}, the module {wanted.get(name, f'no {name}')}"
            )

    def _signatures(self) -> dict[str, Signature]:
        return self.module.signatures

    def _references(self, executable: Executable) -> dict[str, Reference]:
        eager = self._eager()
        found: dict[str, Reference] = {}
        raised = None
        for name, function in executable.functions.items():
            if name in eager:
                found[name] = eager_reference(function.signature, eager[name])
                continue
            raised = raised or to_torch(self.module)
            found[name] = RaisedReference(raised.functions[name], raised.state)
        return found

    def _eager(self) -> Mapping[str, Any]:
        """Return what runs in eager for each entry point, as far as there is something."""
        names = list(self._signatures())
        if self.against is not None:
            if len(names) == 1:
                return {names[0]: self.against}
            return {n: getattr(self.against, n) for n in names if hasattr(self.against, n)}
        return {name: program for name, program in self.module.eager.items() if _is_alive(program)}

    def _with_first_difference(self, report: Report, failure: FailedCall) -> Report:
        """Return the report with the first operator that differs, or a note that none was found."""
        try:
            first_difference = self._first_difference(failure)
        except PeltonError as error:
            return _noting(report, f"the first operator that differs was not found: {error}")
        if first_difference is None:
            return _noting(
                report,
                "no operator differs when its value is a result of the program: the difference "
                "is in how operators are compiled together, or the artifact is of another module",
            )
        return dataclasses.replace(report, first_difference=first_difference)

    def _first_difference(self, failure: FailedCall) -> FirstDifference | None:
        assert self.build is not None
        eager = self._eager_program(failure)
        program, inputs = self._graph(failure, eager)
        table = eager.decompositions if eager is not None else None
        search = Bisection(program, inputs, self.build, self.options, self.target, table)
        return search.first_difference()

    def _eager_program(self, failure: FailedCall) -> EagerProgram | None:
        """Return what the artifact was compared with, where torch can trace it."""
        eager = self._eager().get(failure.function)
        if eager is None or isinstance(eager, EagerProgram):
            return eager
        signature = self._signatures()[failure.function]
        with contextlib.suppress(PeltonError):
            return eager_program(eager, signature, failure.sizes.values)
        return None

    def _graph(self, failure: FailedCall, eager: EagerProgram | None) -> tuple[Raised, list[Any]]:
        """Return the graph to search, and its inputs at the call that failed."""
        if eager is not None:
            program = flat_program(eager, self._signatures()[failure.function])
            _set_buffers(program.graph_module, failure.state)
            return program, list(failure.leaves)
        raised = raise_function(open_module(self.module), failure.function, effects=False)
        given = iter(failure.leaves)
        inputs = [
            failure.state.get(port.origin, raised.initial_state[port.origin])
            if port.kind == "state"
            else _as_input(next(given), port)
            for port in raised.inputs
        ]
        return raised, inputs


def _as_input(value: Any, port: Any) -> Any:
    if not port.is_scalar or port.is_python_number:
        return value
    return torch.tensor(value, dtype=port.dtype)


def _set_buffers(module: torch.nn.Module, state: Mapping[str, torch.Tensor]) -> None:
    """Write state to the buffers of a traced module, whose names may have another path before."""
    with torch.no_grad():
        for name, buffer in module.named_buffers():
            ends = [known for known in state if f".{name}".endswith(f".{known}")]
            if ends:
                buffer.copy_(state[max(ends, key=len)])


def _noting(report: Report, note: str) -> Report:
    return dataclasses.replace(report, notes=(*report.notes, note))


def _is_alive(program: EagerProgram) -> bool:
    found = program.find()
    owner = found if isinstance(found, torch.nn.Module) else getattr(found, "__self__", None)
    return found is not None and not (isinstance(owner, torch.nn.Module) and not is_runnable(owner))


def _interface(signature: Signature) -> str:
    return str(dataclasses.replace(signature, location="", producer={}))
