"""Contracts of torch's fake tensors."""

from __future__ import annotations

import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from pelton.aot.compat.fake_tensors import (
    FakeTensor,
    FakeTensorMode,
    detect_fake_mode,
    implemented,
    op_implementations_dict,
    storage_key,
    tensor_metadata,
    unset_fake_temporarily,
)
from tests.contracts import contract

FAKE = "torch._subclasses.fake_tensor"


@contract(f"{FAKE}.FakeTensor", breaks="tensors without data, and values in graphs")
def test_tensors_of_a_mode_have_no_data() -> None:
    mode = FakeTensorMode()
    with mode:
        made = torch.empty(2, 3) + 1
    assert isinstance(made, FakeTensor) and made.fake_mode is mode
    assert (made.shape, made.device.type) == ((2, 3), "cpu"), "it looks like a tensor of the CPU"
    assert not made.is_meta


@contract(f"{FAKE}.FakeTensorMode", breaks="stand-ins for weights in graphs of torch.compile")
def test_mode_makes_a_stand_in_of_a_tensor() -> None:
    mode = FakeTensorMode(shape_env=ShapeEnv())
    fake = mode.from_tensor(torch.ones(4, dtype=torch.int8), static_shapes=True)
    assert isinstance(fake, FakeTensor)
    assert (fake.shape, fake.dtype) == ((4,), torch.int8)
    assert all(type(size) is int for size in fake.shape), "static sizes are numbers"
    assert mode.shape_env is not None


@contract(f"{FAKE}.unset_fake_temporarily", breaks="decompositions that compute constants")
def test_values_are_computed_within_a_mode() -> None:
    with FakeTensorMode(), unset_fake_temporarily():
        value = torch.tensor([1.0, 2.0]).sum()
    assert not isinstance(value, FakeTensor) and value.item() == 3.0


@contract("torch._guards.detect_fake_mode", breaks="rewrites that insert nodes with values")
def test_mode_of_values_is_found() -> None:
    mode = FakeTensorMode()
    with mode:
        fake = torch.empty(2)
    assert detect_fake_mode([torch.ones(2), fake]) is mode
    assert detect_fake_mode([torch.ones(2)]) is None


@contract("shape_prop._extract_tensor_metadata", breaks="result types of inserted nodes")
def test_metadata_has_what_the_importer_reads() -> None:
    with FakeTensorMode():
        found = tensor_metadata(torch.empty(2, 3, dtype=torch.float16))
    assert (found.shape, found.dtype, found.is_quantized) == ((2, 3), torch.float16, False)


@contract("fake_impls.op_implementations_dict", breaks="sizes of slices of dynamic dimensions")
def test_an_operator_of_fake_tensors_is_replaced_in_a_block() -> None:
    slice_ = torch.ops.aten.slice.Tensor
    assert slice_ in op_implementations_dict
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x = mode.from_tensor(torch.ones(4))

    def constant(mode: object, operator: object, x: torch.Tensor, *rest: object) -> torch.Tensor:
        return x.new_empty(7)

    with implemented(slice_, constant):
        assert x[1:3].shape == (7,), "for sizes that are symbols"
    assert x[2:3].shape != (7,)


@contract("UntypedStorage._cdata", breaks="as_strided, which is taken from the owner of the memory")
def test_views_have_the_key_of_the_memory_that_they_share() -> None:
    with FakeTensorMode():
        x, y = torch.empty(4, 3), torch.empty(4, 3)
        assert storage_key(x[1:].T) == storage_key(x)
        assert storage_key(x) != storage_key(y)
        assert storage_key(x.clone()) != storage_key(x)
