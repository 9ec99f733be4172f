import pytest
import torch

from pelton.aot.spec.errors import ExportError
from pelton.aot.spec.tensor_traits import DeviceAffinity, DeviceTensorTrait, ExternalTensorTrait


def test_trait_that_was_set_is_got_back_itself() -> None:
    tensor = torch.zeros(2)
    external, device = ExternalTensorTrait("scope", "name"), DeviceTensorTrait(1, [0, 2])
    external.set(tensor)
    device.set(tensor)
    assert ExternalTensorTrait.get(tensor) is external
    assert DeviceTensorTrait.get(tensor) is device


def test_tensor_without_traits_has_none() -> None:
    assert ExternalTensorTrait.get(torch.zeros(2)) is None
    assert DeviceTensorTrait.get(torch.zeros(2)) is None


def test_later_trait_replaces_the_earlier() -> None:
    tensor = torch.zeros(2)
    ExternalTensorTrait("scope", "old").set(tensor)
    ExternalTensorTrait("scope", "new").set(tensor)
    assert ExternalTensorTrait.get(tensor) == ExternalTensorTrait("scope", "new")


def test_trait_that_was_cleared_is_gone() -> None:
    tensor = torch.zeros(2)
    ExternalTensorTrait("scope", "name").set(tensor)
    ExternalTensorTrait.clear(tensor)
    ExternalTensorTrait.clear(tensor)
    assert ExternalTensorTrait.get(tensor) is None


def test_affinities_are_equal_by_value_and_hashable() -> None:
    assert DeviceAffinity(1, [0]) == DeviceAffinity(1, [0]) != DeviceAffinity(1)
    assert len({DeviceAffinity(0), DeviceAffinity(0), DeviceAffinity(1, [0])}) == 2
    assert repr(DeviceAffinity(1, [0])) == "DeviceAffinity(ordinal=1, queues=[0])"
    assert repr(DeviceTensorTrait(0)) == "DeviceTensorTrait(ordinal=0, queues=None)"


@pytest.mark.parametrize(("ordinal", "queues"), [(-1, None), ("0", None), (0, [-1]), (True, None)])
def test_number_that_no_device_has_is_refused(ordinal: int, queues: list[int] | None) -> None:
    with pytest.raises(ExportError, match="numbered from 0"):
        DeviceAffinity(ordinal, queues)
