"""The manifest of a `.trtm` package: its entry points, engines, profiles, state and checksums.

The manifest is JSON, and reading one never runs code of the file. Every number of it is checked
here, so that what loads and calls can rely on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from ..call.dtypes import DTYPES
from ..call.signature import Signature, size_from_json
from ..checked import require, require_json, require_unique
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
    Role,
)
from .manifest_checks import check_function, check_shared

FORMAT = 1
"""Version of the manifest. 1: the first."""


@dataclass(frozen=True)
class Manifest:
    """What a package says of itself.

    Attributes:
        flavor: The library that the engines are for.
        engine_version: The version of that library that built them.
        compute_capabilities: The GPUs that they run on, such as `8.6`; empty: any.
        functions: The entry points.
        options: The options that it was compiled with.
        versions: Of the packages that made it.
        notes: What a user should know of the whole.
        members: All members but the manifest; `write_trtm` fills them in.
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
            ArtifactError: It is not what `to_json` writes, of another format, or its parts do not
                fit together.
        """
        data = require_json("manifest", text)
        if data.get("format") != FORMAT:
            raise ArtifactError(
                f"the manifest has format {data.get('format')!r}, this version of Pelton reads "
                f"format {FORMAT}; compile the module again"
            )
        try:
            manifest = Manifest(
                _one_of(Flavor, data["flavor"]),
                _text(data["engine_version"]),
                _texts(data["compute_capabilities"]),
                tuple(_function(function) for function in data["functions"]),
                dict(data["options"]),
                {_text(name): _text(version) for name, version in data["versions"].items()},
                _texts(data["notes"]),
                {_text(name): _member(*member) for name, member in data["members"].items()},
            )
        except ArtifactError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ArtifactError(f"the manifest is damaged: {error!r:.300}") from error
        manifest.check()
        return manifest

    def check(self) -> None:
        """Check that the parts fit together.

        Raises:
            ArtifactError: Names the function and what does not fit.
        """
        require(bool(self.functions), "the package has no entry point")
        require_unique(function.name for function in self.functions)
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


def _function(data: Mapping[str, Any]) -> EntryPoint:
    return EntryPoint(
        Signature.from_json(json.dumps(data["signature"])),
        tuple(_port(port) for port in data["inputs"]),
        tuple(_port(port) for port in data["outputs"]),
        tuple(_profile(*profile) for profile in data["profiles"]),
        {_one_of(Role, role): _text(name) for role, name in data["members"].items()},
        dict(data["report"]),
        _texts(data["notes"]),
    )


def _port_to_json(port: Port) -> dict[str, Any]:
    return {**vars(port), "dtype": port.dtype.name, "shape": list(port.shape)}


def _port(data: Mapping[str, Any]) -> Port:
    number, host = data["number"], data["host"]
    if type(number) is not bool or type(host) is not bool:
        raise ValueError(f"the flags of port {data['name']!r} are no booleans")
    return Port(
        _text(data["name"]),
        _one_of(Kind, data["kind"]),
        _text(data["origin"]),
        DTYPES[data["dtype"]],
        tuple(size_from_json(size) for size in data["shape"]),
        number,
        host,
    )


def _profile(name: Any, inputs: Mapping[str, Any]) -> EngineProfile:
    bounds = {
        _text(n): Bounds(*(_sizes(point) for point in points)) for n, points in inputs.items()
    }
    return EngineProfile(_text(name), bounds)


def _sizes(data: Any) -> tuple[int, ...]:
    if not isinstance(data, list) or not all(type(size) is int for size in data):
        raise ValueError(f"{data!r} is no list of sizes")
    return tuple(data)


def _member(nbytes: Any, sha256: Any) -> Member:
    if type(nbytes) is not int or nbytes < 0 or len(bytes.fromhex(_text(sha256))) != 32:
        raise ValueError(f"{nbytes!r}, {sha256!r} are no size and checksum")
    return Member(nbytes, sha256)


def _one_of(choices: Any, data: Any) -> Any:
    if data not in get_args(choices):
        raise ValueError(f"{data!r} is none of {get_args(choices)}")
    return data


def _text(data: Any) -> str:
    if not isinstance(data, str):
        raise TypeError(f"expected text, got {data!r}")
    return data


def _texts(data: Any) -> tuple[str, ...]:
    return tuple(_text(item) for item in data)
