"""Which runners there are, and why one may be absent."""

import importlib.util

import pytest
import torch

from pelton.aot.bench import runners
from pelton.aot.spec.errors import ExportError


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
