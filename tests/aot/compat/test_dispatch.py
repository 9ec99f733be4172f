"""Contract of torch's dispatch: modes, and kernels in Python."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from pelton.aot.compat.dispatch import TorchDispatchMode, enable_python_dispatcher
from pelton.aot.compat.fake_tensors import FakeTensorMode
from tests.contracts import contract


class Recording(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> torch.Tensor:
        self.seen.append(str(func))
        result: torch.Tensor = func(*args, **(kwargs or {}))
        return result


@contract("TorchDispatchMode", breaks="verify: which integers a program indexes its tables with")
def test_mode_sees_each_operator_that_runs() -> None:
    recording = Recording()
    with recording:
        found = torch.nn.functional.embedding(torch.tensor([1]), torch.eye(2))
    assert recording.seen[-1] == "aten.embedding.default"
    assert found.tolist() == [[0.0, 1.0]]
    torch.ones(2) + 1
    assert recording.seen[-1] == "aten.embedding.default", "the mode ends with the block"


@contract("enable_python_dispatcher", breaks="deciding whether an operator has to be decomposed")
def test_kernels_in_python_fix_no_sizes() -> None:
    mode = FakeTensorMode(shape_env=ShapeEnv())
    x = mode.from_tensor(torch.ones(4, 3))
    with mode, enable_python_dispatcher():
        padded = torch.constant_pad_nd(x, [1, 0])
    assert isinstance(x.shape[0], torch.SymInt)
    assert not x.shape[0].node.expr.is_number
    assert padded.shape[1] == 4
