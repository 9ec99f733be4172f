"""`compile`: from a function or module to an executable."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from pelton.runtime.executable import Executable, load
from pelton.runtime.files import StrPath
from pelton.runtime.progress import stage

from .capture.trace import TRACING_LOCK
from .ir.builder import ModuleBuilder
from .ir.exported import ExportedModule
from .ir.module import new_module
from .lowering.program_module import assemble, trace_callable
from .output import ExportOutput
from .spec.config import CONFIGURED, Configured
from .spec.errors import ExportError
from .spec.profiles import Profiles
from .targets.request import Storage, compile_request
from .verify import Numerics
from .verify.tuning import tune as find_fastest


def compile(
    func: torch.nn.Module | Callable[..., Any],
    /,
    optimization_level: int | None = 3,
    *,
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    target: str = "cpu",
    profiles: Profiles | None = None,
    device: str | Sequence[str] | None = None,
    cache_dir: StrPath | Configured | None = CONFIGURED,
    timing_cache_file_path: StrPath | None = None,
    check: bool | Numerics = False,
    tune: bool = False,
    **options: Any,
) -> Executable:
    """Compile a function or module for this machine and load it.

    What is given as `InputInfo` or `DimensionInputInfo`, alone or in lists, tuples, dicts and
    dataclasses, becomes an input. All else is a constant of the program: tensors, numbers,
    containers of them, the weights of a module (named in the program by their `state_dict` keys).
    The executable has the inputs as its only parameters. Of `*args` and `**kwargs`, count and
    names are those given here.

    The function must be pure: changing arguments, globals or attributes, and results other than
    tensors, are refused by name. Registered buffers of a module may change: they are state of the
    executable. Printing, `assert` and files happen once, while it is traced.

    Args:
        func: An `nn.Module` or a function of tensors.
        optimization_level: 0 to 5: more gives faster code and takes longer; None: the target's
            default.
        args: Positional arguments: specs, or values to keep as constants.
        kwargs: Keyword arguments of the same kinds.
        target: What to compile for, as for `ExportOutput.compile`; it must be able to run here.
        profiles: Several sets of bounds, of which a call must fit one, as for `export`.
        device: What to run on, as for `runtime.load`.
        cache_dir: Folder of the compile cache; None: no cache; default: `aot.config.cache_dir`.
        timing_cache_file_path: Where TensorRT keeps kernel timings; default: `aot.config`'s.
        check: Run the program against PyTorch before it is returned, as `ExportOutput.verify`.
        tune: Time variants of the code on this machine and keep the fastest, as `aot.tune`
            does; the compile cache remembers which it was.
        options: Options of the target.

    Returns:
        The executable, with `input_infos`, `save(path)` and a signature for `inspect`.

    Raises:
        ExportError: The arguments do not fit, nothing is an input, the function is not pure or
            cannot be traced, or there is no such target or option.
        CompileError: The compiler failed.
        DeviceError: This machine cannot run the program.
        NumericsError: `check` found that the program computes something else.

    Example:
        >>> from pelton.aot.spec.inputs import InputInfo
        >>> def scale(x, factor):
        ...     return x * factor
        >>> double = compile(scale, args=[InputInfo(((1, 2, 4), 3), torch.float32), 2.0])
        >>> double(torch.ones(1, 3))
        tensor([[2., 2., 2.]])
        >>> double.input_infos["x"].shape_bounds.max
        (4, 3)
    """
    given = {"optimization_level": optimization_level, **options}
    storage = Storage(cache_dir, timing_cache_file_path)
    request = compile_request(
        target, given, storage
    )  # a wrong option is refused before the long work
    exported = _export(func, args, kwargs or {}, profiles)
    if tune:
        tuned = find_fastest(exported, target=target, device=device, cache_dir=cache_dir, **given)
        request = compile_request(target, {**given, "variant": tuned.variant}, storage)
    with request.private_file() as path:
        with stage(f"compiling for {target}"):
            artifact = request.build(exported, path, private=True)
        for note in artifact.notes:
            warnings.warn(note, stacklevel=2)
        name = f"the function compiled for {target}"
        ExportOutput(None, exported).check_artifact(request, check, path, name)
        # The executable keeps the file mapped; its name is not needed any more.
        parameters = None if request.target.holds_parameters else exported.parameters
        return load(path, device=device, parameters=parameters)


def _export(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], profiles: Profiles | None
) -> ExportedModule:
    if isinstance(func, type) or not callable(func):
        raise ExportError(
            f"cannot compile {func!r}: pass a function or an nn.Module instance; "
            "for anything else use aot.export(...).compile(...)"
        )
    builder = ModuleBuilder(new_module("module"))
    with TRACING_LOCK:
        traced = trace_callable(func, args, kwargs, pure=True)
        return assemble(builder, traced, func, profiles=profiles)
