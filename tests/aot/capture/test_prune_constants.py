"""Signatures without constants: which parameters, items and values are left."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.capture.arguments import flatten_arguments
from pelton.aot.capture.prune_constants import prune_constants
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.call.signature import ConstantSpec, ScalarSpec, Signature, TensorSpec

INFO = aot.InputInfo((2,), torch.float32)
TENSOR = TensorSpec(DTYPES["float32"], (2,))
WEIGHT = torch.ones(2)


def pruned(function: Any, *args: Any, **kwargs: Any) -> Signature:
    arguments = flatten_arguments(function, args, kwargs, None, only_specs=True)
    constants = arguments.constants()
    inputs = tuple(constants.get(index, TENSOR) for index in range(len(arguments.leaves)))
    signature = Signature("f", arguments.parameters, inputs)
    return prune_constants(signature, arguments)


def plain(x: Any, y: Any = 2) -> None: ...


def variadic(*args: Any, **kwargs: Any) -> None: ...


def test_parameters_without_an_input_go() -> None:
    found = pruned(plain, WEIGHT, INFO)
    assert [(p.name, p.tree) for p in found.parameters] == [("y", 0)]
    assert found.inputs == (TENSOR,)


def test_a_signature_of_inputs_only_stays_as_it_is() -> None:
    found = pruned(plain, INFO, INFO)
    assert [(p.name, p.tree) for p in found.parameters] == [("x", 0), ("y", 1)]
    assert found.inputs == (TENSOR, TENSOR)


def test_a_signature_of_constants_only_is_empty() -> None:
    found = pruned(plain, WEIGHT)
    assert found.parameters == () and found.inputs == ()


def test_variadic_parameters_close_up() -> None:
    found = pruned(variadic, 1, INFO, WEIGHT, INFO, a=INFO, b=3)
    trees = {p.name: p.tree for p in found.parameters}
    assert trees == {"args": ["tuple", [0, 1]], "kwargs": ["dict", [["a", 2]]]}
    assert found.inputs == (TENSOR,) * 3


def test_an_empty_variadic_parameter_goes() -> None:
    assert [p.name for p in pruned(variadic, INFO).parameters] == ["args"]


@pytest.mark.parametrize("value", [True, 0, 1.5, "text"])
def test_numbers_and_text_stay_in_containers_with_inputs(value: Any) -> None:
    found = pruned(plain, {"a": INFO, "b": value})
    (parameter,) = found.parameters
    assert parameter.tree == ["dict", [["a", 0], ["b", 1]]]
    assert found.inputs == (TENSOR, ConstantSpec(value))


def test_other_constants_become_none() -> None:
    found = pruned(plain, [WEIGHT, INFO, torch.float32, None, (WEIGHT, [INFO])])
    (parameter,) = found.parameters
    assert parameter.tree == ["list", [None, 0, None, None, ["tuple", [None, ["list", [1]]]]]]
    assert found.inputs == (TENSOR, TENSOR)


def test_integers_that_are_inputs_stay() -> None:
    arguments = flatten_arguments(
        plain, (aot.DimensionInputInfo((1, 2, 3)), 5), {}, None, only_specs=True
    )
    signature = Signature("f", arguments.parameters, (ScalarSpec("int"), ConstantSpec(5)))
    found = prune_constants(signature, arguments)
    assert [p.name for p in found.parameters] == ["x"] and found.inputs == (ScalarSpec("int"),)
