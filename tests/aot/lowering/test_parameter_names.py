"""Names of the tensors of a program, and which are external parameters."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.capture.parameters.externalize import externalize_module_parameters
from pelton.aot.capture.program import inputs_and_outputs
from pelton.aot.capture.trace import capture
from pelton.aot.lowering.importer import StateName
from pelton.aot.lowering.parameter_names import ProgramTensors


class Tied(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = torch.nn.Parameter(torch.ones(3))
        self.second = self.first
        self.register_buffer("mask", torch.zeros(3), persistent=False)
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.first + self.second + self.mask) * self.scale


def tensors(traced: torch.nn.Module, external: Any = None, **kwargs: Any) -> ProgramTensors:
    captured = capture(traced, (torch.ones(3),), {})
    program = inputs_and_outputs(captured.program)
    return ProgramTensors(program, external, captured.prefix, **kwargs)


def external(module: Tied, given: Any) -> dict[str, tuple[bool, str | None]]:
    found = tensors(module, given)
    named = {"first": module.first, "mask": module.mask, "scale": module.scale}
    attributes = {name: found.attributes(name, tensor) for name, tensor in named.items()}
    return {name: (bool(a.external), a.external_scope) for name, a in attributes.items()}


def test_tied_tensors_have_the_first_of_their_keys() -> None:
    found = tensors(Tied())
    assert found.name_of("root.first") == StateName("__auto.first", "first")
    assert found.name_of("root.second") == StateName("__auto.first", "first")
    assert found.name_of("root.mask") == StateName("__auto.mask", "mask")


@pytest.mark.parametrize(
    "given, first, scale, scope",
    [
        (None, False, False, None), (False, False, False, None), (True, True, True, None),
        ("", True, True, None), ("net", True, True, "net"),
        (lambda key: key == "scale", False, True, None),
        (lambda key: key == "second", True, False, None),
    ],
)  # fmt: skip
def test_parameters_and_persistent_buffers_are_picked(
    given: Any, first: bool, scale: bool, scope: str | None
) -> None:
    found = external(Tied(), given)
    assert found["first"] == (first, scope if first else None)
    assert found["scale"] == (scale, scope if scale else None)
    assert found["mask"] == (False, None)


def test_a_tied_tensor_is_external_by_the_key_that_was_picked() -> None:
    module = Tied()
    attributes = tensors(module, lambda key: key == "second").attributes("first", module.first)
    assert attributes.map_name("first") == "second"


def test_externalised_modules_keep_their_external_names() -> None:
    module = Tied()
    externalize_module_parameters(module, external_scope="s", prefix="p")
    found = tensors(module, None, module=module)
    attributes = found.attributes("first", module.first)
    assert attributes.external and attributes.external_scope == "s"
    assert attributes.map_name("first") in ("p.first", "p.second")
    assert (
        tensors(module, "t", module=module).attributes("first", module.first).external_scope == "t"
    )


@pytest.mark.parametrize("given", [1, ["first"], {"first": True}])
def test_other_choices_are_refused(given: Any) -> None:
    with pytest.raises(aot.ExportError, match="external_parameters must be True, the name of a"):
        tensors(Tied(), given)


def test_inline_tensors_need_data() -> None:
    with torch.device("meta"):
        module = torch.nn.Linear(3, 2)
    with pytest.raises(aot.ExportError, match=r"weight"):
        tensors(module)
    assert tensors(module, True).name_of("root.weight").logical == "weight"
