"""A benchmark job: runner, program and inputs of one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from pelton.runtime.checked import Decoder

from ..capture.example_inputs import random_tensor
from ..compat import pytrees
from ..spec.inputs import DimensionInputInfo, InputInfo, bounds_of_size

Argument = Any
"""What `aot.export` takes for an argument: a spec, a tensor, a constant, or containers of them."""


@dataclass(frozen=True)
class Job:
    """One way of running one program, for one process.

    Attributes:
        program: What the process imports, `package.module:name`.
        inputs: Its inputs, each as text that the process understands.
        runner: How to run it: a name of `runner_names`.
        folder: Where the process writes files.
        threads: On how many processors, each with a thread.
        device: Where eager and inductor run: `cpu` or `cuda`.
        seed: Of the weights and the inputs.
    """

    program: str
    inputs: tuple[str, ...]
    runner: str
    folder: str
    threads: int = 1
    device: str = "cpu"
    seed: int = 0

    def to_json(self) -> str:
        """Return the job as one line.

        Example:
            >>> job = Job("zoo:net", ("2x4xf32",), "eager", "/tmp")
            >>> Job.from_json(job.to_json()) == job
            True
        """
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Job:
        """Read what `to_json` wrote."""
        return Decoder().decode(Job, json.loads(text), "job")


@dataclass(frozen=True)
class Subject:
    """What is measured: a program and its arguments, as specs and as values.

    Attributes:
        program: An `nn.Module` or a function of tensors.
        args: Positional arguments, as `aot.export` takes them.
        kwargs: Keyword arguments likewise.
        seed: Of the values.
    """

    program: Callable[..., Any]
    args: Sequence[Argument]
    kwargs: Mapping[str, Argument]
    seed: int = 0

    def values(self, device: str = "cpu") -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of a call, each tensor on `device`."""
        values = example_inputs([list(self.args), dict(self.kwargs)], self.seed)
        moved = pytrees.tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), values)
        return moved[0], moved[1]


def example_inputs(args: Any, seed: int = 0) -> Any:
    """Return `args` with values in place of specs.

    Sizes are the `opt` of their range, numbers too; for elements see `examples.random_tensor`.

    Args:
        args: What `aot.export` takes, in any containers.
        seed: Of the random values: the same gives the same.

    Raises:
        ExportError: A spec has an element type that cannot be filled.

    Example:
        >>> x, n = example_inputs([InputInfo(((1, 2, 4), 3), torch.float32), 5])
        >>> x.shape, n
        (torch.Size([2, 3]), 5)
    """
    generator = torch.Generator().manual_seed(seed)

    def value(spec: Argument) -> Any:
        if isinstance(spec, DimensionInputInfo):
            return spec.value_bounds[1]
        if isinstance(spec, InputInfo):
            shape = [bounds_of_size(size, "InputInfo")[1] for size in spec.shape]
            return random_tensor(shape, spec.dtype, generator)
        return spec

    return pytrees.tree_map(value, args)
