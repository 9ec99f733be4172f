"""Export target: a captured program with its signature and devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch.export import ExportedProgram

from pelton.runtime.call.signature import Signature

from ...spec.tensor_traits import DeviceAffinity


@dataclass(frozen=True)
class ExportTargetDef:
    """An entry point to be.

    Attributes:
        target: The program. Its parameters and buffers are named `root.<key>`.
        signature: What it takes and gives: names, ranges, containers, constants.
        arg_device: The device of each flat argument, by its position.
        oblivious: Whether it was traced without regard to sizes of 0 and 1.
    """

    target: ExportedProgram
    signature: Signature
    arg_device: Mapping[int, DeviceAffinity] | None = None
    oblivious: bool = True
