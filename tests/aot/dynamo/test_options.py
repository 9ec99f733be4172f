"""Wrong options are one clear error at the first call."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pelton import aot


def call(**given: Any) -> Any:
    return torch.compile(lambda x: x + 1, backend="pelton", **given)(torch.ones(2))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"options": {"traget": "cpu"}}, "no option 'traget'; known: .*optimization_level.*target"),
        ({"options": {"target": "gpu"}}, "unknown target 'gpu'; known: cpu"),
        ({"options": {"target": "vulkan"}}, "where torch has no tensors; .* cpu"),
        ({"options": {"target": 3}}, r"options\['target'\] must be a name, such as 'cpu', got 3"),
        ({"options": {"fallback": "no"}}, r"options\['fallback'\] must be True or False, got 'no'"),
        ({"options": {"optimization_level": 9}}, "must be 0 to 5"),
        ({"mode": "max-autotune"}, "has no mode 'max-autotune'; use options="),
    ],
)
def test_wrong_options_are_named_with_those_that_there_are(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(aot.ExportError, match=message):
        call(**given)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device")
def test_a_target_without_its_device_is_an_error_before_anything_is_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pelton.aot.dynamo.torch_compile.compile_graph", None)
    with pytest.raises(aot.DeviceError, match="'cuda:sm_80' needs a CUDA device, and torch"):
        call(options={"target": "cuda:sm_80"})


def test_options_of_the_target_reach_it() -> None:
    assert call(options={"optimization_level": 0, "fallback": False}).tolist() == [2, 2]
