"""Contract of torch's dispatch modes."""

from __future__ import annotations

from typing import Any

import torch

from pelton.aot.compat.dispatch import TorchDispatchMode
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
