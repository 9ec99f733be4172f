import copy
import pickle
from collections.abc import Callable

import pytest
import torch
from torch import nn

from pelton.aot.capture.parameters.externalize import (
    external_tensors,
    externalize_module_parameters,
)
from pelton.aot.spec.tensor_traits import ExternalTensorTrait


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(3, 3, bias=False)
        self.norm = nn.BatchNorm1d(3)
        self.head = nn.Linear(3, 3, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scratch", torch.zeros(3), persistent=False)


def names(module: nn.Module) -> dict[str, str]:
    return {key: trait.external_name for key, trait in external_tensors(module).items()}


def test_parameters_and_persistent_buffers_are_named_by_their_keys() -> None:
    net = Net()
    externalize_module_parameters(net, external_scope="model")
    assert ExternalTensorTrait.get(net.norm.bias) == ExternalTensorTrait("model", "norm.bias")
    assert ExternalTensorTrait.get(net.norm.running_var) is not None
    assert ExternalTensorTrait.get(net.scratch) is None
    assert external_tensors(net).keys() == net.state_dict().keys()


def test_prefix_goes_before_each_key() -> None:
    net = nn.Linear(2, 2)
    assert externalize_module_parameters(net, prefix="a.b").names == ("a.b.weight", "a.b.bias")
    assert names(net) == {"weight": "a.b.weight", "bias": "a.b.bias"}


def test_tied_tensor_has_its_first_name_under_each_key() -> None:
    net = Net()
    externalize_module_parameters(net)
    assert names(net)["head.weight"] == names(net)["embed.weight"] == "embed.weight"


def test_module_that_was_not_externalised_has_no_external_tensors() -> None:
    assert external_tensors(Net()) == {}


def replaced(net: nn.Module) -> nn.Module:
    net.load_state_dict({k: v.clone() for k, v in net.state_dict().items()}, assign=True)
    return net


@pytest.mark.parametrize(
    "change",
    [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net)), nn.Module.half,
     lambda net: nn.Module.float(copy.deepcopy(net))],
    ids=["deepcopy", "pickle", "half", "deepcopy and float"],
)  # fmt: skip
def test_names_survive(change: Callable[[nn.Module], nn.Module]) -> None:
    net = Net()
    externalize_module_parameters(net, external_scope="model", prefix="net")
    before = external_tensors(net)
    assert external_tensors(change(net)) == before


def test_names_survive_the_move_to_the_meta_device() -> None:
    net = nn.Linear(2, 2)
    externalize_module_parameters(net)
    assert names(net.to("meta")) == {"weight": "weight", "bias": "bias"}


def test_assigned_tensors_take_the_traits_over() -> None:
    net = nn.Linear(2, 2)
    externalize_module_parameters(net)
    assert ExternalTensorTrait.get(replaced(net).bias) == ExternalTensorTrait("", "bias")


def test_tensors_that_are_no_longer_tied_have_their_own_names() -> None:
    net = Net()
    externalize_module_parameters(net)
    assert names(replaced(net))["head.weight"] == "head.weight"


def test_names_of_an_externalised_submodule_are_found_in_the_whole() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    externalize_module_parameters(net[1], prefix="second")
    assert names(copy.deepcopy(net)) == {"1.weight": "second.weight", "1.bias": "second.bias"}


def test_trait_on_a_tensor_goes_before_the_recorded_name() -> None:
    net = nn.Linear(2, 2)
    externalize_module_parameters(net)
    ExternalTensorTrait("other", "mine").set(net.bias)
    assert external_tensors(net)["bias"] == ExternalTensorTrait("other", "mine")


def test_later_externalisation_replaces_the_earlier() -> None:
    net = nn.Linear(2, 2)
    externalize_module_parameters(net, prefix="old")
    externalize_module_parameters(net, prefix="new")
    assert names(net)["bias"] == names(copy.deepcopy(net))["bias"] == "new.bias"


def test_removed_externalisation_leaves_nothing() -> None:
    net = Net()
    externalize_module_parameters(net).remove()
    assert external_tensors(net) == external_tensors(copy.deepcopy(net)) == {}
    assert ExternalTensorTrait.get(net.norm.bias) is None
