"""Options of engine builds."""

from __future__ import annotations

from typing import Any

import pytest

from pelton.aot.spec.errors import ExportError
from pelton.aot.targets.tensorrt.options import DEFAULT_LEVEL, TensorRTOptions


def test_the_default_level() -> None:
    assert TensorRTOptions().level == DEFAULT_LEVEL
    assert TensorRTOptions(optimization_level=0).level == 0


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("optimization_level", 6, "optimization_level must be 0 to 5, got 6"),
        ("optimization_level", True, "optimization_level must be 0 to 5, got True"),
        ("flavor", "cuda", "flavor must be one of 'auto', 'tensorrt', 'rtx', got 'cuda'"),
        ("weights", "none", "weights must be one of 'baked', 'shared', 'refit', got 'none'"),
        ("fallback", "eager", "fallback must be one of None, 'iree', got 'eager'"),
        ("workspace_bytes", 0, "workspace_bytes must be a number of bytes, got 0"),
        ("workspace_bytes", 1.5, "workspace_bytes must be a number of bytes, got 1.5"),
        ("timing_cache", 3, "timing_cache must be the path of a file, got 3"),
        ("layer_info", 1, "layer_info must be True or False, got 1"),
        ("reference", None, "reference must be True or False, got None"),
        ("compute_capabilities", "8.9", "compute_capabilities must be texts such as '8.9'"),
        ("compute_capabilities", [8.9], "compute_capabilities must be texts such as '8.9'"),
    ],
)
def test_an_impossible_value_is_refused(option: str, value: Any, message: str) -> None:
    with pytest.raises(ExportError) as caught:
        TensorRTOptions(**{option: value})
    assert str(caught.value).startswith(message)


def test_options_are_hashable_data() -> None:
    options = TensorRTOptions(compute_capabilities=["8.9"])
    assert options.compute_capabilities == ("8.9",)
    with pytest.raises(AttributeError):
        options.flavor = "rtx"  # type: ignore[misc]
