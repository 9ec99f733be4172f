"""Fallback functions: entry points of a package that IREE runs instead of TensorRT."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..archive.parameter import Parameter
from ..archive.parameter_set import ParameterSet
from ..artifacts.entry_points import EntryPoint, Port, Role
from ..call.signature import STATE_GET, STATE_SET, Signature
from ..errors import ArtifactError, PeltonError
from .iree import IreeModule, load_vmfb
from .trtm_module import PackageModule, to_scalar


class FallbackFunction:
    """An entry point in an IREE module, with the state of the package that it belongs to.

    The module has state of its own. Each call copies the package's state into it first, and the
    state that the function writes back afterwards.

    Args:
        package: The loaded package, which has the state.
        function: The entry point.
        role: The role of the member that holds the module.
        device: The device of IREE.
        weights: The package's weights, by origin.

    Raises:
        ArtifactError: The module is damaged, or is not of this function.
        DeviceError: The module cannot run on the device.
    """

    def __init__(
        self,
        package: PackageModule,
        function: EntryPoint,
        role: Role,
        device: str,
        weights: Mapping[str, Parameter],
    ) -> None:
        self._package = package
        self._state = function.ports("state")
        member = function.members[role]
        where = f"{member} of {package.path}"
        module = _load(package.package.read(member), where, device, weights)
        signatures = module.signatures()
        if function.name not in signatures:
            raise ArtifactError(f"{where} has no function {function.name!r}")
        found = signatures[function.name]
        if (found.inputs, found.results) != (
            function.signature.inputs,
            function.signature.results,
        ):
            raise ArtifactError(f"{where} is {found}, expected {function.signature}")
        self._run = module.function(found, stateful=bool(self._state))
        read = [port for port in function.inputs if port.kind == "state"]
        written = [port for port in function.outputs if port.kind == "state"]
        self._loads = _accessors(module, signatures, STATE_SET, read, where)
        self._stores = _accessors(module, signatures, STATE_GET, written, where)

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Call with checked input leaves; return one value for each leaf of the result."""
        if not self._state:
            return self._run(leaves)
        with self._package.lock:
            for name, write in self._loads.items():
                write([to_scalar(self._state[name], self._package.read_state(name))])
            results = self._run(leaves)
            for name, read in self._stores.items():
                self._package.write_state(name, read([])[0])
        return results


def _accessors(
    module: IreeModule,
    signatures: Mapping[str, Signature],
    prefix: str,
    ports: Sequence[Port],
    where: str,
) -> dict[str, Any]:
    lacking = [port.origin for port in ports if prefix + port.origin not in signatures]
    if lacking:
        raise ArtifactError(f"{where} has no accessors of its state {', '.join(lacking)}")
    return {p.origin: module.function(signatures[prefix + p.origin], True) for p in ports}


def _load(
    data: memoryview, where: str, device: str, weights: Mapping[str, Parameter]
) -> IreeModule:
    """Load a module from memory, through a temporary file that is unlinked once it is mapped."""
    scopes: dict[str, list[Parameter]] = {}
    for origin, weight in weights.items():
        scope, separator, name = origin.partition("::")
        if separator:
            scopes.setdefault(scope, []).append(replace(weight, name=name))
    sets = {scope: ParameterSet(found, where) for scope, found in scopes.items()}
    handle, name = tempfile.mkstemp(suffix=".vmfb")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        return load_vmfb(Path(name), device, sets or None, True)
    except PeltonError as error:
        error.args = (str(error).replace(name, where),)
        raise
    finally:
        os.unlink(name)
