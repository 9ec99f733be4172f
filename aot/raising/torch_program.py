"""Exported modules as torch modules that run in eager: an oracle for every target."""

from __future__ import annotations

import inspect
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pelton.runtime.archive import ParameterSource
from pelton.runtime.call import pytrees
from pelton.runtime.call.binding import Binder
from pelton.runtime.call.signature import ConstantSpec, Signature
from pelton.runtime.errors import SignatureError
from pelton.runtime.files import StrPath

from ..ir.exported import HasExported
from ..ir.module import read_module
from .fx import ModuleSource, Port, Raised, open_source, raise_function
from .fx.bytecode import MAGIC


def to_torch(
    source: StrPath | HasExported,
    parameters: ParameterSource | Mapping[str, ParameterSource] | None = None,
    function: str | None = None,
) -> TorchProgram:
    """Return an exported module as a torch module that runs in eager.

    It needs neither the Python model nor a compiler, and computes what the MLIR says: what a
    compiled artifact gives can be compared with it, operator by operator.

    Args:
        source: The path of a `.mlir` or `.mlirbc` file, or what `export` returned.
        parameters: Where external parameters come from, as for `runtime.load`. By default, of an
            `ExportOutput`, the tensors that it was exported with.
        function: The one entry point that is wanted; None: all.

    Raises:
        ArtifactError: The file is no MLIR module.
        ExportError: There is no such entry point.
        ParameterError: External parameters are missing, or of another type or shape.
        UnsupportedOpError: Operations have no form in torch; lists all of them with their lines.

    Example:
        >>> from pelton import aot
        >>> out = aot.export(lambda x, scale: {"y": x * scale}, args=(torch.ones(2), 3))
        >>> to_torch(out)(torch.ones(2))
        {'y': tensor([3., 3.])}
    """
    opened = open_module(source, parameters)
    names = opened.entry_points() if function is None else [function]
    raised = [raise_function(opened, name) for name in names]
    return TorchProgram(raised)


def open_module(
    source: StrPath | HasExported,
    parameters: ParameterSource | Mapping[str, ParameterSource] | None = None,
) -> ModuleSource:
    """Return an exported module ready to be raised, as `to_torch` takes it.

    Args:
        source: The path of a `.mlir` or `.mlirbc` file, or what `export` returned.
        parameters: As for `to_torch`.

    Raises:
        ArtifactError: The file is no MLIR module.
    """
    if isinstance(source, (str, os.PathLike)):
        module_op = read_module(source)
        return open_source(module_op, bytecode=_mapped(Path(source)), parameters=parameters)
    exported = source.exported
    # What a file had inline is in its module; the bytes are at hand only where they were made here.
    resources = exported.resources.data if exported.file is None else None
    given = exported.with_parameters(parameters).parameters
    return open_source(exported.module_op, resources=resources, parameters=given)


def _mapped(path: Path) -> memoryview | None:
    """Return the bytes of a bytecode file, mapped; None for text."""
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            return None
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


class ProgramState(nn.Module):
    """The state of a module, as buffers that its entry points share.

    Args:
        initial: The first value of each piece of state, by name.

    Example:
        >>> state = ProgramState({"cache.keys": torch.zeros(2)})
        >>> state["cache.keys"] = torch.ones(2)
        >>> state.reset()
        >>> state["cache.keys"]
        tensor([0., 0.])
    """

    def __init__(self, initial: Mapping[str, torch.Tensor]) -> None:
        super().__init__()
        self._initial = dict(initial)
        self._buffer_of = {name: f"state_{index}" for index, name in enumerate(initial)}
        for name, tensor in initial.items():
            self.register_buffer(self._buffer_of[name], tensor.clone())

    def __iter__(self) -> Iterator[str]:
        return iter(self._buffer_of)

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.get_buffer(self._buffer_of[name])

    def __setitem__(self, name: str, value: torch.Tensor) -> None:
        self._buffers[self._buffer_of[name]] = value.detach().clone()

    def reset(self) -> None:
        """Put the first values back."""
        for name, tensor in self._initial.items():
            self[name] = tensor


class EntryPoint(nn.Module):
    """An entry point of a module, called as the function that was exported.

    Args:
        raised: Its graph.
        state: The state that it shares with the other entry points.

    Attributes:
        graph_module: The graph: flat inputs and outputs, state and numbers as tensors.
        signature: What it takes and gives.
    """

    def __init__(self, raised: Raised, state: ProgramState) -> None:
        super().__init__()
        self.graph_module = raised.graph_module
        self.signature: Signature = raised.signature
        self._raised = raised
        self._state = state
        self._binder = Binder(raised.signature)
        self.__signature__: inspect.Signature = raised.signature.python()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run it with arguments as the signature has them.

        Raises:
            SignatureError: The arguments do not fit.
        """
        leaves = self._binder.leaves(args, kwargs)
        if not self._binder.fits(leaves):
            self._binder.explain(leaves)
        given = iter(leaves)
        inputs = [self._input(port, given) for port in self._raised.inputs]
        with torch.no_grad():
            outputs = self.graph_module(*inputs)
        held = _storages([*inputs, *self.graph_module.buffers()])
        results = []
        for port, value in zip(self._raised.outputs, outputs, strict=True):
            if port.kind == "state":
                self._state[port.origin] = value
            else:
                results.append(_result(port, value, held))
        return self._structured(results)

    def _input(self, port: Port, given: Iterator[Any]) -> Any:
        if port.kind == "state":
            return self._state[port.origin]
        value = next(given)
        if not port.is_scalar:
            return value
        return int(value) if port.is_python_number else torch.tensor(value, dtype=port.dtype)

    def _structured(self, results: Sequence[Any]) -> Any:
        computed = iter(results)
        leaves = [
            leaf.value if isinstance(leaf, ConstantSpec) else next(computed)
            for leaf in self.signature.results
        ]
        return pytrees.unflatten(self.signature.result_tree, leaves)


def _storages(values: Sequence[Any]) -> set[int]:
    tensors = (value for value in values if isinstance(value, torch.Tensor))
    return {tensor.untyped_storage().data_ptr() for tensor in tensors}


def _result(port: Port, value: torch.Tensor, held: set[int]) -> Any:
    """Return a result as the caller gets it: numbers as Python's, tensors that are theirs."""
    if port.is_scalar:
        return value.item()
    return value.clone() if value.untyped_storage().data_ptr() in held else value


class TorchProgram(nn.Module):
    """A module as torch runs it. Its entry points are attributes; with only one, call it itself.

    Made by `to_torch`.

    Args:
        raised: Its functions.

    Attributes:
        state: The values that are kept between calls.
    """

    def __init__(self, raised: Sequence[Raised]) -> None:
        super().__init__()
        initial: dict[str, torch.Tensor] = {}
        for item in raised:
            initial.update(item.initial_state)
        self.state = ProgramState(initial)
        self._modules_of = {item.name: f"entry_{index}" for index, item in enumerate(raised)}
        for item in raised:
            self.add_module(self._modules_of[item.name], EntryPoint(item, self.state))

    @property
    def functions(self) -> dict[str, EntryPoint]:
        """The entry points by name."""
        modules = self._modules
        return {name: modules[key] for name, key in self._modules_of.items()}  # type: ignore[misc]

    def __getattr__(self, name: str) -> Any:
        key = self.__dict__.get("_modules_of", {}).get(name)
        if key is not None and name not in self._modules:
            return self._modules[key]
        return super().__getattr__(name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the only entry point.

        Raises:
            SignatureError: There are several.
        """
        if len(self._modules_of) != 1:
            raise SignatureError(
                f"the module has {len(self._modules_of)} entry points, call one of them: "
                f"{', '.join(self._modules_of)}"
            )
        (function,) = self.functions.values()
        return function(*args, **kwargs)
