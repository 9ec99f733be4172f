"""Several exported programs of one module, which share its parameters and buffers."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import torch
from torch import nn
from torch.export import ExportedProgram

from pelton.runtime.files import StrPath
from pelton.runtime.progress import stage

from ...spec.errors import ExportError
from ...spec.locations import user_location
from ...spec.meta_tensors import has_data
from ...spec.tensor_traits import DeviceAffinity
from ..arguments import Arguments
from ..parameters.externalize import external_tensors
from ..program import inputs_and_outputs
from ..signature import signature_of_capture
from ..trace import Capture, capture
from .call_spec import with_call_spec
from .export_target import ExportTargetDef
from .fx_files import read_programs, write_programs

STATE_PREFIX = "root."
"""What the names of a module's tensors start with in its programs."""


class FxPrograms:
    """A named set of exported programs that share parameters, buffers and constants.

    `export` makes one module of them, with an entry point for each, in which every shared tensor is
    one global: a buffer that one program changes is what the others then read.

    Attributes:
        programs: The programs by name; `target` is the `ExportedProgram`.

    Example:
        >>> import tempfile, pathlib
        >>> builder = FxProgramsBuilder(torch.nn.Linear(2, 2))
        >>> @builder.export_program(args=(torch.ones(1, 2),), dynamic_shapes={"x": {0: "rows"}})
        ... def apply(module, x):
        ...     return module(x)
        >>> @builder.export_program(args=(torch.ones(2),))
        ... def shift(module, x):
        ...     return x + module.bias
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "linear.json"
        >>> builder.save(path)  # the bias and the weight were there already
        2
        >>> for signature in aot.export(FxPrograms.load(path)).signatures.values():
        ...     print(signature)
        apply(x: float32[rows, 2]) -> (float32[rows, 2]) where rows=0..
        shift(x: float32[2]) -> (float32[2])
    """

    def __init__(self) -> None:
        self.programs: dict[str, ExportTargetDef] = {}

    @property
    def root_module(self) -> nn.Module | None:
        """The module that the programs were traced from; None where they were loaded."""
        return None

    def save(self, path: StrPath) -> int:
        """Write the programs: a description at `path`, and one archive of all tensors beside it.

        Both can be moved together. They appear when all is written; until then, what was there
        before stays whole.

        Args:
            path: The description, such as `programs.json`.

        Returns:
            How many tensors were found to be stored already.

        Raises:
            ArtifactError: The folder does not exist, or the path is a folder.
            ExportError: A program cannot be written down; names it.
        """
        root = self.root_module
        traits = external_tensors(root) if root is not None else {}
        external = {STATE_PREFIX + key: trait for key, trait in traits.items()}
        return write_programs(path, self.programs, external)

    @staticmethod
    def load(path: StrPath) -> FxPrograms:
        """Read programs that `save` wrote; what was shared is shared again.

        Nothing in the files is run. The tensors are mapped from the archive, not read; changing
        them does not change the file.

        Args:
            path: The description.

        Raises:
            ArtifactError: A file is missing, damaged, or of another version; says which and why.
        """
        loaded = FxPrograms()
        loaded.programs = read_programs(path)
        return loaded

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.programs)})"


class FxProgramsBuilder(FxPrograms):
    """Exports programs that are all variations of one module.

    Args:
        root_module: The module, which each program gets as its first argument.

    Raises:
        ExportError: `root_module` is no `nn.Module`.

    Example:
        >>> builder = FxProgramsBuilder(torch.nn.Linear(2, 2))
        >>> program = builder.export_program(
        ...     lambda module, x: module(x).relu(), args=(torch.ones(1, 2),), name="relu"
        ... )
        >>> sorted(program.state_dict), list(builder.programs)
        (['root.bias', 'root.weight'], ['relu'])
    """

    def __init__(self, root_module: nn.Module) -> None:
        super().__init__()
        if not isinstance(root_module, nn.Module):
            raise ExportError(
                f"FxProgramsBuilder takes an nn.Module, got {root_module!r:.200}",
                location=user_location(),
            )
        self._root = root_module
        self._without_data: dict[str, torch.Tensor] = {}

    @property
    def root_module(self) -> nn.Module:
        """The module that the programs are traced from."""
        return self._root

    @overload
    def export_program(
        self,
        f: Callable[..., Any],
        *,
        args: Sequence[Any] | None = ...,
        kwargs: Mapping[str, Any] | None = ...,
        dynamic_shapes: Any = ...,
        strict: bool = ...,
        name: str | None = ...,
        arg_device: Mapping[int, DeviceAffinity] | None = ...,
    ) -> ExportedProgram: ...

    @overload
    def export_program(
        self,
        f: None = ...,
        *,
        args: Sequence[Any] | None = ...,
        kwargs: Mapping[str, Any] | None = ...,
        dynamic_shapes: Any = ...,
        strict: bool = ...,
        name: str | None = ...,
        arg_device: Mapping[int, DeviceAffinity] | None = ...,
    ) -> Callable[[Callable[..., Any]], ExportedProgram]: ...

    def export_program(
        self,
        f: Callable[..., Any] | None = None,
        *,
        args: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        dynamic_shapes: Any = None,
        strict: bool = True,
        name: str | None = None,
        arg_device: Mapping[int, DeviceAffinity] | None = None,
    ) -> ExportedProgram | Callable[[Callable[..., Any]], ExportedProgram]:
        """Trace a function of the module and add it to the programs.

        Called directly, or as a decorator with or without arguments.

        Args:
            f: A function whose first argument is the module.
            args: Positional arguments beyond the module: tensors, specs (`InputInfo`,
                `DimensionInputInfo`), containers of them, and constants.
            kwargs: Keyword arguments of the same kinds.
            dynamic_shapes: Which sizes are dynamic, by parameter name or position, as for
                `torch.export.export`; sizes may also be given by a name or a `NamedDimension`.
            strict: Trace Python bytecode, which finds more side effects, takes several times as
                long, and knows less of Python. `aot.export` does not unless it is asked to.
            name: Name of the entry point; default: the function's.
            arg_device: The device of each flat argument, by its position.

        Returns:
            The program, called as `f` without the module: `program.module()(x)`. It takes and
            gives flat tuples where torch does not know one of the containers (dataclasses that
            are not registered with it). Without `f`, a decorator that gives the program.

        Raises:
            ExportError: The name is taken or none, or the function cannot be traced.
            DynamicShapeError: A size that was asked to be dynamic would have to be fixed.
        """

        def add(function: Callable[..., Any]) -> ExportedProgram:
            chosen = self._free_name(function, name)
            with stage(f"torch.export of {chosen}"):
                captured = capture(
                    types.MethodType(function, self._root),
                    args or (),
                    kwargs or {},
                    dynamic_shapes,
                    strict=strict,
                )
            self.programs[chosen] = self._target(chosen, captured, arg_device)
            return self.programs[chosen].target

        return add if f is None else add(f)

    def _free_name(self, function: Callable[..., Any], name: str | None) -> str:
        if not callable(function):
            raise ExportError(
                f"export_program takes a function of the module, got {function!r:.200}",
                location=user_location(),
            )
        chosen = str(name or getattr(function, "__name__", "<nameless>"))
        if not chosen.isidentifier():
            raise ExportError(
                f"{chosen!r} cannot be the name of an entry point; give one by name=",
                location=user_location(),
            )
        if chosen in self.programs:
            raise ExportError(
                f"a program {chosen!r} is exported multiple times; give another name by name=",
                location=user_location(),
            )
        return chosen

    def _target(
        self, name: str, captured: Capture, arg_device: Mapping[int, DeviceAffinity] | None
    ) -> ExportTargetDef:
        self._share_dataless(captured.program)
        signature = signature_of_capture(captured, inputs_and_outputs(captured.program), name)
        program = with_call_spec(captured.program, signature)
        _check_devices(name, captured.arguments, arg_device)
        return ExportTargetDef(program, signature, arg_device, captured.oblivious)

    def _share_dataless(self, program: ExportedProgram) -> None:
        """Have one tensor for each that has no data: each trace makes its own of them."""
        for tensors in (program.state_dict, program.constants):
            for key, tensor in tensors.items():
                if isinstance(tensor, torch.Tensor) and not has_data(tensor):
                    tensors[key] = self._without_data.setdefault(key, tensor)


def _check_devices(
    name: str, arguments: Arguments, arg_device: Mapping[int, DeviceAffinity] | None
) -> None:
    """Refuse devices of arguments that a program does not have.

    Raises:
        ExportError: There is one.
    """
    constants = arguments.constants()
    for index, device in (arg_device or {}).items():
        if not 0 <= index < len(arguments.leaves) or index in constants:
            raise ExportError(
                f"{name}: arg_device names argument {index}, but the flat arguments that are "
                f"inputs are {', '.join(f'{i.index} ({i.path})' for i in arguments.inputs)}",
                location=user_location(),
            )
        if not isinstance(device, DeviceAffinity):
            raise ExportError(
                f"{name}: the device of argument {index} must be a DeviceAffinity, got {device!r}",
                location=user_location(),
            )
