"""Which runners there are, and why one may be absent."""

import importlib.util

import pytest
import torch

from pelton.aot.bench import Settings, example_inputs, runners
from pelton.aot.spec.errors import ExportError
from pelton.aot.spec.inputs import DimensionInputInfo, InputInfo, NamedDimension


def test_unknown_way_is_refused_with_a_hint() -> None:
    with pytest.raises(ExportError, match=r"unknown target 'eagre'.*did you mean 'eager'"):
        runners.check_runner("eagre")
    for name in (*runners.DEFAULT_RUNNERS, "cuda:sm_80", "cpu-tuned", "vulkan"):
        runners.check_runner(name)


def test_absent_packages_are_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert runners.absence("onnxruntime") == (
        "onnxruntime and onnx and onnxscript are not installed: "
        "pip install onnxruntime onnx onnxscript"
    )


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_ways_that_need_a_gpu_are_absent_without_one() -> None:
    assert runners.absence("cuda:sm_80") == "no CUDA device on this machine"
    assert runners.absence("tensorrt") is not None
    assert runners.absence("inductor", "cuda") == "PyTorch finds no CUDA device"
    assert runners.absence("cpu-tuned") is None


def test_inputs_are_of_the_middle_size_and_the_same_each_time() -> None:
    specs = [
        InputInfo((NamedDimension("n", 1, 3, 9), 2), torch.bfloat16),
        {"ids": InputInfo(((1, 4, 8),), torch.int64), "n": DimensionInputInfo((1, 5, 6))},
        7,
    ]
    x, named, constant = example_inputs(specs, seed=1)
    assert x.shape == (3, 2) and x.dtype == torch.bfloat16
    assert set(named["ids"].tolist()) <= {0, 1} and named["n"] == 5 and constant == 7
    assert torch.equal(example_inputs(specs, seed=1)[0], x)
    assert not torch.equal(example_inputs(specs, seed=2)[0], x)


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(ExportError, match="threads must be 1 to"):
        Settings(threads=100_000)
    with pytest.raises(ExportError, match="seconds must be more than 0"):
        Settings(seconds=0)
