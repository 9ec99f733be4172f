"""Contracts of torch's modules: their tables, hooks and base classes."""

from __future__ import annotations

import copy

import torch
from torch import nn

from pelton.aot.compat.modules import (
    TRAINING_LAYERS,
    load_state_dict_post_hooks,
    share_members,
    tensor_tables,
)
from tests.contracts import contract


@contract("Module._parameters, _buffers", breaks="tracing of models on the meta device")
def test_exchanged_tensors_are_those_that_the_module_uses() -> None:
    module = nn.BatchNorm1d(2).eval()
    parameters, buffers = tensor_tables(module)
    assert set(parameters) == {"weight", "bias"}
    assert set(buffers) == {"running_mean", "running_var", "num_batches_tracked"}
    parameters["bias"] = nn.Parameter(torch.full((2,), 5.0))
    buffers["running_mean"] = torch.full((2,), 1.0)
    torch.testing.assert_close(module(torch.ones(1, 2)), torch.full((1, 2), 5.0))


@contract("Module._modules", breaks="a second export of raised graphs, which keeps names")
def test_shared_members_keep_their_names() -> None:
    source = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    module = nn.Module()
    share_members(module, source)
    assert list(module.state_dict()) == list(source.state_dict())
    assert dict(module.named_children()) == dict(source.named_children())


@contract("Module._load_state_dict_post_hooks", breaks="externalize_module_parameters on copies")
def test_hooks_stay_with_copies_of_a_module() -> None:
    def hook(module: nn.Module, keys: object) -> None: ...

    module = nn.Linear(2, 2)
    assert list(load_state_dict_post_hooks(module)) == []
    handle = module.register_load_state_dict_post_hook(hook)
    assert list(load_state_dict_post_hooks(copy.deepcopy(module))) == [hook]
    handle.remove()
    assert list(load_state_dict_post_hooks(module)) == []


@contract("_BatchNorm, _DropoutNd", breaks="the warning of models that are exported in training")
def test_layers_that_train_have_one_of_two_bases() -> None:
    for layer in (nn.BatchNorm2d(1), nn.SyncBatchNorm(1), nn.Dropout(), nn.AlphaDropout()):
        assert isinstance(layer, TRAINING_LAYERS), layer
    assert not isinstance(nn.LayerNorm(1), TRAINING_LAYERS)
