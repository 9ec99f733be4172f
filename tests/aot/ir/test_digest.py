"""Digests of modules, parameters and compiles: equal for equal content, else different."""

from __future__ import annotations

import hashlib

import torch
from iree.compiler.ir import Attribute, Operation

from pelton.aot.ir.builder import GlobalAttributes, ModuleBuilder
from pelton.aot.ir.digest import Resources, compile_key, module_digest, parameters_digest
from pelton.aot.ir.module import new_module
from pelton.runtime.archive import load_parameters
from pelton.runtime.archive.parameter_set import ParameterSet
from pelton.runtime.call.dtypes import DTYPES

LARGE = torch.arange(20_000.0)


def module(*tensors: torch.Tensor, name: str = "m") -> tuple[Operation, Resources]:
    builder = ModuleBuilder(new_module(name))
    for index, tensor in enumerate(tensors):
        builder.create_tensor_global(f"g{index}", tensor, attrs=GlobalAttributes())
    return builder.module_op, Resources(builder.resources)


def digest(*tensors: torch.Tensor, name: str = "m") -> str:
    return module_digest(*module(*tensors, name=name))


def test_equal_modules_have_equal_digests() -> None:
    assert digest(LARGE, torch.ones(3)) == digest(LARGE.clone(), torch.ones(3))


def test_each_part_of_a_module_counts() -> None:
    changed = LARGE.clone()
    changed[-1] += 1
    found = [
        digest(LARGE), digest(changed), digest(LARGE, name="n"), digest(LARGE, LARGE),
        digest(torch.tensor([1.0, 2.0])), digest(torch.tensor([1.0, 3.0])), digest(),
    ]  # fmt: skip
    assert len(set(found)) == len(found)


def test_unknown_resources_are_hashed_with_the_module() -> None:
    op, _ = module(LARGE)
    other, _ = module(LARGE + 1)
    assert module_digest(op, Resources({})) == module_digest(op, Resources({}))
    assert module_digest(op, Resources({})) != module_digest(other, Resources({}))


def test_attributes_count() -> None:
    op, resources = module()
    before = module_digest(op, resources)
    op.attributes["note"] = Attribute.parse("1 : i64", op.context)
    assert module_digest(op, resources) != before


def test_each_resource_is_hashed_once() -> None:
    resources = Resources({"w": b"abc", "v": b""})
    assert resources.digests()["w"] == hashlib.sha256(b"abc").hexdigest()
    resources.data["w"] = b"changed"  # type: ignore[index]
    assert resources.digests()["w"] == hashlib.sha256(b"abc").hexdigest()


def sets(**tensors: torch.Tensor) -> dict[str, ParameterSet]:
    return {"model": load_parameters(tensors)["model"]}


def test_parameters_count_by_name_type_and_value() -> None:
    row = (DTYPES["float32"], (2,))
    table = {"model": {"a": row, "b": row}}
    ones, twos = torch.ones(2), torch.full((2,), 2.0)
    found = [
        parameters_digest(given, table)
        for given in (
            sets(a=ones, b=twos), sets(a=twos, b=ones), sets(a=ones), sets(b=ones), {},
            sets(a=ones.to(torch.float64), b=twos),
        )
    ]  # fmt: skip
    assert len(set(found)) == len(found)
    assert parameters_digest(sets(a=ones, b=twos, c=ones), table) == found[0]
    reordered = {"model": {"b": row, "a": row}}
    assert parameters_digest(sets(b=twos, a=ones), reordered) == found[0]


def test_the_key_of_a_compile_depends_on_module_and_identity() -> None:
    base = compile_key("0", {"a": 1, "b": None})
    assert base == compile_key("0", {"b": None, "a": 1})
    others = [
        compile_key("1", {"a": 1, "b": None}),
        compile_key("0", {"a": 1}),
        compile_key("0", {"a": 2, "b": None}),
    ]
    assert len({base, *others}) == 4
