"""Manifest of a `.trtm` package: its entry points, engines, profiles, state and checksums.

The manifest is JSON, and reading one never runs code of the file. Every value is checked when it
is read, so that loading and calling can rely on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ..call.dtypes import DType
from ..call.signature import Signature, dtype_from_json, size_from_json
from ..call.sizes import Size
from ..checked import Decoder, require, require_json, require_unique
from ..errors import ArtifactError
from .entry_points import (
    PARAMETERS,
    STATE,
    Bounds,
    EngineProfile,
    EntryPoint,
    Flavor,
    Kind,
    Member,
    Port,
)
from .manifest_checks import check_function, check_member, check_shared

FORMAT = 1
"""Version of the manifest. 1: the first."""


@dataclass(frozen=True)
class Manifest:
    """The description of a package.

    Attributes:
        flavor: The library that the engines are for.
        engine_version: The version of that library that built them.
        compute_capabilities: The GPUs that they run on, such as `8.6`; empty: any.
        functions: The entry points.
        options: The options that it was compiled with.
        versions: Versions of the Python packages that made it.
        notes: Notes for users.
        members: All members but the manifest; `write_trtm` adds them.
    """

    flavor: Flavor
    engine_version: str
    compute_capabilities: tuple[str, ...] = ()
    functions: tuple[EntryPoint, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    members: Mapping[str, Member] = field(default_factory=dict)

    @property
    def state(self) -> dict[str, Port]:
        """A port of each piece of state by its name."""
        return self._shared("state")

    @property
    def parameters(self) -> dict[str, Port]:
        """A port of each weight that is an input of engines, by its origin."""
        return self._shared("parameter")

    def _shared(self, kind: Kind) -> dict[str, Port]:
        return {k: port for each in self.functions for k, port in each.ports(kind).items()}

    def to_json(self) -> str:
        """Return the text of the manifest."""
        return json.dumps(
            {
                "format": FORMAT,
                "flavor": self.flavor,
                "engine_version": self.engine_version,
                "compute_capabilities": list(self.compute_capabilities),
                "functions": [_function_to_json(function) for function in self.functions],
                "options": dict(self.options),
                "versions": dict(self.versions),
                "notes": list(self.notes),
                "members": {name: [m.nbytes, m.sha256] for name, m in self.members.items()},
            },
            indent=1,
        )

    @staticmethod
    def from_json(text: bytes) -> Manifest:
        """Read a manifest.

        Raises:
            ArtifactError: It is not what `to_json` writes, of another format, or inconsistent.
        """
        data = require_json("manifest", text)
        found = data.pop("format", None)
        if found != FORMAT:
            raise ArtifactError(
                f"the manifest has format {found!r}, this version of Pelton reads format {FORMAT}; "
                "compile the module again"
            )
        manifest = _DECODER.decode(Manifest, data, "manifest")
        manifest.check()
        return manifest

    def check(self) -> None:
        """Check that the parts are consistent.

        Raises:
            ArtifactError: Names the function and the inconsistency.
        """
        require(bool(self.functions), "the package has no entry point")
        require_unique(function.name for function in self.functions)
        for name, stored in self.members.items():
            check_member(name, stored)
        for function in self.functions:
            check_function(function, self.members)
        for kind, member in (("state", STATE), ("parameter", PARAMETERS)):
            check_shared(kind, self.functions)
            if self._shared(cast(Kind, kind)):
                require(member in self.members, f"there is no {member} for its {kind}s")


def _function_to_json(function: EntryPoint) -> dict[str, Any]:
    return {
        "signature": json.loads(function.signature.to_json()),
        "inputs": [_port_to_json(port) for port in function.inputs],
        "outputs": [_port_to_json(port) for port in function.outputs],
        "profiles": [
            [profile.name, {n: [b.min, b.opt, b.max] for n, b in profile.inputs.items()}]
            for profile in function.profiles
        ],
        "members": dict(function.members),
        "report": dict(function.report),
        "notes": list(function.notes),
    }


def _port_to_json(port: Port) -> dict[str, Any]:
    return {
        "name": port.name,
        "kind": port.kind,
        "origin": port.origin,
        "dtype": port.dtype.name,
        "shape": list(port.shape),
        "number": port.is_scalar,
        "host": port.host,
    }


_DECODER = Decoder(
    rows=frozenset([EngineProfile, Bounds, Member]),
    hooks={Signature: Signature.decode, DType: dtype_from_json, Size: size_from_json},
)
