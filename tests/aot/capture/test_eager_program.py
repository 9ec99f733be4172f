"""Eager programs: called as they were exported, and no reason to keep a module alive."""

from __future__ import annotations

import gc
from typing import Any

import torch

from pelton.aot.capture.arguments import flatten_arguments
from pelton.aot.capture.eager_program import EagerProgram

X = torch.ones(2)


class Net(torch.nn.Module):
    def forward(self, x: Any, *, factor: Any = 3) -> Any:
        return x["a"] * factor

    def other(self, x: Any) -> Any:
        return x["a"] + 1


def program(target: Any, **kwargs: Any) -> EagerProgram:
    function = target.forward if isinstance(target, torch.nn.Module) else target
    return EagerProgram(target, flatten_arguments(function, ({"a": X},), kwargs, None))


def test_inputs_are_put_in_their_places() -> None:
    module = Net()
    assert torch.equal(program(module, factor=5)([X * 2]), X * 10)
    assert torch.equal(program(module.other)([X]), X + 1)


def test_a_module_is_not_kept_alive() -> None:
    module = Net()
    whole, method = program(module), program(module.other)
    assert whole.find() is module and method.find() == module.other
    del module
    gc.collect()
    assert whole.find() is None and method.find() is None


def test_a_function_is_kept() -> None:
    found = program(lambda x: x["a"] - 1)
    gc.collect()
    assert torch.equal(found([X]), X - 1)
    assert found.target is None
