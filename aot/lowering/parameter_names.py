"""Names of the tensors of a program, and the choice of those that are external parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from ..capture.parameters.externalize import external_tensors
from ..capture.program import STATE_KINDS, Program
from ..ir.builder import GlobalAttributes
from ..spec.errors import ExportError
from ..spec.meta_tensors import refuse_without_data
from .importer import StateName

ExternalParameters = bool | str | Callable[[str], bool] | None
"""Which parameters leave the module: all, all under a scope, those that a function picks, or as
their `ExternalTensorTrait` says."""


class ProgramTensors:
    """Names and attributes of the globals that a program's tensors become.

    A tied tensor is called by the first of its `state_dict` keys, as archives of checkpoints have
    it; external, by the first key that is picked.

    Args:
        program: The program.
        external: Which parameters and persistent buffers come from an archive.
        prefix: What the program's names start with beyond the user's names.
        module: The module that was traced, which may have been externalised.

    Raises:
        ExportError: `external` is of another kind, or a tensor that would be part of the module
            has no data; names all of them.
    """

    def __init__(
        self,
        program: Program,
        external: ExternalParameters = None,
        prefix: str = "",
        module: torch.nn.Module | None = None,
    ) -> None:
        self._scope = external or None if isinstance(external, str) else None
        self._picks = _picker(external)
        self._prefix = prefix
        self._traits = external_tensors(module) if module is not None else {}
        self._keys: dict[int, list[str]] = {}
        for qualified, tensor in program.state_dict.items():
            self._keys.setdefault(id(tensor), []).append(qualified.removeprefix(prefix))
        self._first = {key: keys[0] for keys in self._keys.values() for key in keys}
        refuse_without_data(self._inline(program))

    def name_of(self, qualified: str) -> StateName:
        """Return the names of a tensor by its name in the program."""
        key = qualified.removeprefix(self._prefix)
        name = self._first.get(key, key)
        return StateName(f"__auto.{name}", name)

    def _inline(self, program: Program) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the tensors that become part of the module, with their names."""
        for spec in program.graph_signature.input_specs:
            if spec.kind in STATE_KINDS:
                tensor = program.tensor(str(spec.target))
                name = self.name_of(str(spec.target)).logical
                if not self.attributes(name, tensor).infer_external_from_tensor(tensor)[0]:
                    yield name, tensor

    def attributes(self, name: str, tensor: torch.Tensor) -> GlobalAttributes:
        """Return the attributes of a tensor's global by its logical name."""
        trait = self._traits.get(name)
        if trait is not None:
            scope, external_name = self._scope or trait.external_scope or None, trait.external_name
            return GlobalAttributes(
                external=True, external_scope=scope, name_mapper=lambda _: external_name
            )
        picked = next(filter(self._picks, self._keys.get(id(tensor), ())), None)
        if picked is None:
            return GlobalAttributes()
        return GlobalAttributes(
            external=True, external_scope=self._scope, name_mapper=lambda _: picked
        )


def _picker(external: ExternalParameters) -> Callable[[str], bool]:
    """Return the predicate of a parameter's key that selects external parameters."""
    if external is None or isinstance(external, (bool, str)):
        return lambda _: external is not None and external is not False
    if callable(external):
        return external
    raise ExportError(
        "external_parameters must be True, the name of a scope, or a function of a parameter's "
        f"name, not {external!r}"
    )
