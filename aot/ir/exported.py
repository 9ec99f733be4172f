"""The exported module: frozen data that targets, files, checks and `torch.compile` share."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
from iree.compiler.ir import Operation

from pelton.runtime.archive import ParameterSource
from pelton.runtime.artifacts.vmfb import ParameterTable
from pelton.runtime.call.signature import STATE_GET, STATE_SET, Signature

from .digest import Resources
from .module import parameters_of, signatures_of

_MOST_STATE = 4
"""Values of state that a description names."""


@dataclasses.dataclass(frozen=True)
class ExternalParameter:
    """A parameter that the module takes from an archive, and the tensor to save for it."""

    scope: str
    name: str
    tensor: torch.Tensor


class Signatures(dict[str, Signature]):
    """The signature of each entry point by name; printed with one line for each.

    Example:
        >>> out = aot.export(torch.nn.Linear(4, 2), args=(torch.zeros(3, 4),))
        >>> print(out.signatures)
        main(input: float32[3, 4]) -> (float32[3, 2])
    """

    def __str__(self) -> str:
        return "\n".join(map(str, self.values()))

    __repr__ = __str__


@dataclasses.dataclass(frozen=True)
class ExportedModule:
    """An MLIR module with the data that belongs to it.

    It names no verb: `to_torch`, `verify`, `tune` and the targets take one, `export` makes one.

    Attributes:
        module_op: The module's operation.
        external_parameters: The parameters that it takes from archives, with their tensors.
        resources: The data of inline globals, by its name in the module.
        eager: The `EagerProgram` that each entry point was exported from, where there is one.
        file: The file that the module was read from; None for one that was exported here. A file
            has the names of external parameters, not their values.
        given_parameters: Where the values of external parameters come from, as for
            `runtime.load`, in place of `external_parameters`.
    """

    module_op: Operation
    external_parameters: tuple[ExternalParameter, ...] = ()
    resources: Resources = dataclasses.field(default_factory=lambda: Resources({}))
    eager: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    file: Path | None = None
    given_parameters: ParameterSource | Mapping[str, ParameterSource] | None = None

    @property
    def exported(self) -> ExportedModule:
        """The module itself, as `HasExported` asks for it."""
        return self

    @property
    def signatures(self) -> Signatures:
        """The signature of each entry point by name; the accessors of state are left out."""
        named = signatures_of(self.module_op).items()
        return Signatures((n, s) for n, s in named if not n.startswith((STATE_GET, STATE_SET)))

    @property
    def parameter_table(self) -> ParameterTable:
        """Element type and shape of each external parameter, by scope and name."""
        return parameters_of(self.module_op)

    @property
    def parameters(self) -> ParameterSource | Mapping[str, ParameterSource] | None:
        """The values of external parameters, as `runtime.load` takes them; None: not known."""
        if self.given_parameters is not None:
            return self.given_parameters
        return by_scope(self.external_parameters) or None

    def with_parameters(
        self, given: ParameterSource | Mapping[str, ParameterSource] | None
    ) -> ExportedModule:
        """Return the module with other values for its external parameters; None: its own."""
        return self if given is None else dataclasses.replace(self, given_parameters=given)


class HasExported(Protocol):
    """An object that holds an exported module: one itself, an `ExportOutput`, an instance."""

    @property
    def exported(self) -> ExportedModule:
        """The exported module."""


def describe(exported: ExportedModule) -> str:
    """Return an exported module in a few lines: entry points, state, external parameters.

    Example:
        >>> print(describe(aot.export(torch.nn.ReLU(), args=(torch.zeros(2),)).exported))
        main(input: float32[2]) -> (float32[2])
    """
    lines = [str(exported.signatures)]
    state = [
        f"{name.removeprefix(STATE_GET)}: {', '.join(map(str, signature.results))}"
        for name, signature in signatures_of(exported.module_op).items()
        if name.startswith(STATE_GET)
    ]
    if state:
        shown = ", ".join(state[:_MOST_STATE])
        more = f", and {len(state) - _MOST_STATE} more" if len(state) > _MOST_STATE else ""
        lines.append(f"state: {shown}{more}")
    for scope, table in exported.parameter_table.items():
        sizes = (math.prod(shape) * dtype.bits // 8 for dtype, shape in table.values())
        lines.append(f"external parameters: {len(table)} in scope {scope!r}, {sum(sizes):,} bytes")
    return "\n".join(lines)


def by_scope(parameters: Iterable[ExternalParameter]) -> dict[str, dict[str, torch.Tensor]]:
    """Return the tensors of external parameters as `runtime.load` takes them."""
    scopes: dict[str, dict[str, torch.Tensor]] = {}
    for parameter in parameters:
        scopes.setdefault(parameter.scope, {})[parameter.name] = parameter.tensor
    return scopes
