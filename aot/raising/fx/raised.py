"""A raised function: its graph, inputs, outputs and initial state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import torch

from pelton.runtime.call.signature import Signature
from pelton.runtime.call.sizes import Dim, Size

Kind = Literal["user", "state", "parameter"]
"""Whether a value is the caller's, a mutable global of the module, or one of its weights."""


@dataclass(frozen=True)
class Port:
    """An input or output of a raised graph.

    Attributes:
        name: Its name: `x`, `cache.keys.0`, `result`, `result.logits`, `state.total`,
            `new_state.total`, `parameter.model.fc.weight`. No other input or output has it.
        kind: Whose it is.
        origin: What it stands for: the path of an argument or result as in the signature; the
            name of a piece of state; `scope::name` of an external parameter or the symbol of a
            weight in the module.
        dtype: The element type of the tensor; of a number, that of its 0-d tensor.
        shape: Its sizes: numbers, names of dimensions, expressions; `?` where not known before
            run time.
        is_scalar: Whether it is a Python number for the caller. The graph takes integers of 64 bits
            as Python's, so that they may drive shapes, and other numbers as 0-d tensors; it gives
            all numbers as 0-d tensors.
        size: For an integer input: the dimension whose size it is.
    """

    name: str
    kind: Kind
    origin: str
    dtype: torch.dtype
    shape: tuple[Size, ...]
    is_scalar: bool = False
    size: Size | None = None

    @property
    def is_python_number(self) -> bool:
        """Whether the graph takes a Python integer and not a tensor."""
        return self.is_scalar and self.kind == "user" and self.dtype is torch.int64


@dataclass(frozen=True)
class Raised:
    """A function of a module as a `torch.fx.GraphModule`.

    The graph is functional: it takes `inputs` in their order and returns a tuple of `outputs`;
    state that the function reads is an input, state that it stores an output.

    Attributes:
        name: The function's name in the module.
        graph_module: The graph; weights are its buffers, except those that are inputs.
        signature: What a caller passes and gets, with constants and containers.
        inputs: First those of the caller, then state, then parameters.
        outputs: First the results, then state. Constant results are in the signature only.
        initial_state: The first value of each state among the inputs and outputs, by its origin.
        parameters: The tensor of each input of kind `parameter`, by its name.
    """

    name: str
    graph_module: torch.fx.GraphModule
    signature: Signature
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    initial_state: Mapping[str, torch.Tensor] = field(default_factory=dict)
    parameters: Mapping[str, torch.Tensor] = field(default_factory=dict)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dynamic dimensions, with their bounds and optimal sizes."""
        return self.signature.dims
