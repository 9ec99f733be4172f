"""Export targets: captured programs with signature and devices."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from pelton.aot.capture.programs.export_target import ExportTargetDef
from pelton.runtime.call.signature import Signature


def test_a_target_is_frozen_data() -> None:
    program = torch.export.export(torch.nn.ReLU(), (torch.ones(2),))
    target = ExportTargetDef(program, Signature("main"))
    assert target.arg_device is None and target.oblivious
    with pytest.raises(dataclasses.FrozenInstanceError):
        target.signature = Signature("other")  # type: ignore[misc]
