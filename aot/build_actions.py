"""Build actions for `iree.build`: `turbine_generate` runs exports in processes of their own.

`iree.build` sizes its pools so that compiles fill the machine, which leaves one process for
generators on two cores. Exports run on one core each, so all generators of a build are started at
once, in a pool with a process for each core (`--generate-jobs` of the build sets another number).
"""

from __future__ import annotations

import argparse
import inspect
import multiprocessing
import threading
import time
import typing
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path
from typing import Any

from iree.build.args import current_args_namespace, register_arg_parser_callback
from iree.build.executor import (
    ActionConcurrency,
    BuildContext,
    BuildFile,
    FileNamespace,
    Scheduler,
)

from pelton.runtime.device.cpu import available_cpus

from .build_origin import Origin, call_pickled, dumps
from .capture.parameters.archives import ParameterArchiveBuilder
from .compat.build_actions import RemotableAction
from .output import ExportOutput
from .spec.errors import ExportError, PeltonError, SourceLocation, user_failure
from .spec.locations import location_of_function, user_location

__all__ = ["turbine_generate"]


def turbine_generate(
    generator: Callable[..., Any],
    *args: Any,
    name: str,
    out_of_process: bool = True,
    **kwargs: Any,
) -> list[BuildFile]:
    """Add an action to the build that calls `generator` and writes what it returns.

    The generator's return annotation says what the files are: `ExportOutput` becomes `{name}.mlir`,
    `ParameterArchiveBuilder` becomes `{name}.irpa` among the build's parameters. A
    `tuple[ExportOutput, ExportOutput]` becomes `{name}_0.mlir` and `{name}_1.mlir`.

    Args:
        generator: A function, or an instance of a class with `__call__`, defined at the top of a
            module or of the build file, so that another process can find it by its name.
        args: Positional arguments of the generator; they travel by pickle, as numbers and texts do.
        name: The files' name within the entry point.
        out_of_process: Call it in a pool of processes, at the same time as other generators; else
            in this process, where it need not be found by name.
        kwargs: More arguments of the generator.

    Returns:
        The files, in the order of what the generator returns.

    Raises:
        ExportError: The annotation is missing or names other types, or the generator or an
            argument cannot travel to another process.

    Example:
        >>> from iree.build import entrypoint
        >>> def linear(size: int) -> aot.ExportOutput:
        ...     return aot.export(nn.Linear(size, 2), args=(torch.ones(1, size),))
        >>> @entrypoint(description="Two models")
        ... def models():
        ...     return [*turbine_generate(linear, 4, name="small"),
        ...             *turbine_generate(linear, size=64, name="large")]
    """
    marshallers = _marshallers_of(generator)
    context = BuildContext.current()
    action = TurbineBuilderAction(
        generator,
        args,
        kwargs,
        ActionConcurrency.PROCESS if out_of_process else ActionConcurrency.THREAD,
        desc=f"Exporting {name}",
        executor=context.executor,
    )
    if out_of_process:
        action.check_picklable()
    for number, marshaller in enumerate(marshallers):
        stem = f"{name}_{number}" if len(marshallers) > 1 else name
        file = context.allocate_file(f"{stem}{marshaller.suffix}", marshaller.namespace)
        file.deps.add(action)
        action.returns.append((marshaller, file))
    return [file for _, file in action.returns]


# What generators return


class ReturnMarshaller(ABC):
    """How one kind of result becomes a file.

    Attributes:
        kind: The type of the result.
        suffix: The suffix of its file.
        namespace: The part of the build's tree that the file goes to.
    """

    kind: type
    suffix: str
    namespace: FileNamespace

    @abstractmethod
    def save_remote_result(self, result: Any, path: Path) -> None:
        """Write a result of this kind to a file, atomically."""


class ExportOutputMarshaller(ReturnMarshaller):
    """Writes MLIR."""

    kind = ExportOutput
    suffix = ".mlir"
    namespace = FileNamespace.GEN

    def save_remote_result(self, result: ExportOutput, path: Path) -> None:
        """Write the module as text."""
        result.save_mlir(path)


class ParameterArchiveMarshaller(ReturnMarshaller):
    """Writes parameters."""

    kind = ParameterArchiveBuilder
    suffix = ".irpa"
    namespace = FileNamespace.PARAMS

    def save_remote_result(self, result: ParameterArchiveBuilder, path: Path) -> None:
        """Write the archive."""
        result.save(path)


_MARSHALLERS: tuple[ReturnMarshaller, ...] = (
    ExportOutputMarshaller(),
    ParameterArchiveMarshaller(),
)


def _marshallers_of(generator: Callable[..., Any]) -> list[ReturnMarshaller]:
    """Return how to write each of the results that a generator's annotation promises."""
    what = f"generator {_name_of(generator)}"
    try:
        annotation = inspect.signature(generator, eval_str=True).return_annotation
    except (TypeError, ValueError, NameError) as error:
        raise ExportError(
            f"{what} cannot be inspected: {error}", location=user_location()
        ) from error
    kinds = (annotation,)
    if typing.get_origin(annotation) is tuple:
        kinds = typing.get_args(annotation)
    found = [
        next((m for m in _MARSHALLERS if isinstance(kind, type) and issubclass(kind, m.kind)), None)
        for kind in kinds
    ]
    marshallers = [marshaller for marshaller in found if marshaller is not None]
    if len(marshallers) < len(found) or not found:
        known = " or ".join(marshaller.kind.__name__ for marshaller in _MARSHALLERS)
        says = "nothing" if annotation is inspect.Signature.empty else repr(annotation)
        raise ExportError(
            f"{what} must say what it returns, as -> {known}, or a tuple of as many of them as it "
            f"returns; its annotation says {says}",
            location=_location_of(generator) or user_location(),
        )
    return marshallers


# The action


class RemoteGenerator:
    """Calls a generator and writes what it returns; everything is checked before a file is.

    Args:
        generation_thunk: The generator.
        thunk_args: Its positional arguments.
        thunk_kwargs: Its keyword arguments.
        return_info: How to write each result, and where.
    """

    def __init__(
        self,
        generation_thunk: Callable[..., Any],
        thunk_args: Sequence[Any],
        thunk_kwargs: Mapping[str, Any],
        return_info: list[tuple[ReturnMarshaller, Path]],
    ) -> None:
        self.generation_thunk = generation_thunk
        self.thunk_args = thunk_args
        self.thunk_kwargs = thunk_kwargs
        self.return_info = return_info

    def __call__(self) -> None:
        """Generate.

        Raises:
            ExportError: The generator failed, or returned another number or other kinds of
                results than its annotation says.
        """
        what = f"generator {_name_of(self.generation_thunk)}"
        try:
            returned = self.generation_thunk(*self.thunk_args, **self.thunk_kwargs)
        except PeltonError:
            raise
        except Exception as error:
            # The user's exception may not survive the way between processes; ours does.
            raise user_failure(what, error) from error
        results = returned if isinstance(returned, (tuple, list)) else (returned,)
        kinds = [marshaller.kind for marshaller, _ in self.return_info]
        if len(results) != len(kinds) or not all(map(isinstance, results, kinds)):
            raise ExportError(
                f"{what} says that it returns {_listed(kinds)}, but it returned "
                f"{_listed([type(result) for result in results])}",
                location=_location_of(self.generation_thunk),
            )
        for result, (marshaller, path) in zip(results, self.return_info, strict=True):
            marshaller.save_remote_result(result, path)


class TurbineBuilderAction(RemotableAction):
    """An action of `iree.build` that runs a generator.

    Args:
        thunk: The generator.
        thunk_args: Its positional arguments.
        thunk_kwargs: Its keyword arguments.
        concurrency: Where to call it.
        kwargs: What every action takes: `desc`, `executor`, `deps`.
    """

    def __init__(
        self,
        thunk: Callable[..., Any],
        thunk_args: Sequence[Any],
        thunk_kwargs: Mapping[str, Any],
        concurrency: ActionConcurrency,
        **kwargs: Any,
    ) -> None:
        super().__init__(concurrency=concurrency, **kwargs)
        self.thunk = thunk
        self.thunk_args = thunk_args
        self.thunk_kwargs = thunk_kwargs
        self.returns: list[tuple[ReturnMarshaller, BuildFile]] = []
        self.processes = _stated_processes()
        self._generation: Future[None] | None = None

    def check_picklable(self) -> None:
        """Check that the generator and its arguments can travel to another process.

        Raises:
            ExportError: They cannot.
        """
        origin = Origin.of(self.thunk)
        arguments = [*enumerate(self.thunk_args), *self.thunk_kwargs.items()]
        what = f"generator {_name_of(self.thunk)}"
        advice = "define it at the top of a module or of the build file, by def or class"
        self._check(origin, self.thunk, what, advice)
        for key, value in arguments:
            self._check(origin, value, f"argument {key!r} of {what}", "pass numbers, texts, ...")

    @staticmethod
    def _check(origin: Origin | None, value: Any, what: str, advice: str) -> None:
        try:
            dumps(origin, value)
        except Exception as error:  # whatever a __reduce__ of the user's raises
            raise ExportError(
                f"{what} cannot travel to another process ({error}); {advice}, "
                "or pass out_of_process=False",
                location=user_location(),
            ) from error

    def invoke(self, scheduler: Scheduler) -> None:
        """Run, in the pool that all generators of the build share; a failure is kept."""
        if self.concurrency is not ActionConcurrency.PROCESS:
            super().invoke(scheduler)
            return
        self.invoke_time = time.time()
        try:
            self._started(scheduler).result()
        except BrokenProcessPool:
            self.failure: Exception | None = ExportError(
                f"{self.desc}: a process of the pool of generators ended abruptly, by a crash or "
                "for want of memory"
            )
        except Exception as error:
            self.failure = error

    def _started(self, scheduler: Scheduler) -> Future[None]:
        """Return this action's generation; the first call of a build starts all of them."""
        with _STARTING:
            if self._generation is None:
                waiting = [dep for dep in list(scheduler.producer_graph) if _can_start(dep)]
                waiting = waiting if self in waiting else [self, *waiting]
                pool = ProcessPoolExecutor(
                    min(self.processes, len(waiting)), multiprocessing.get_context("spawn")
                )
                for action in waiting:
                    action._generation = pool.submit(action.remotable_thunk())
                pool.shutdown(wait=False)  # once all is done
            assert self._generation is not None
            return self._generation

    def remotable_thunk(self) -> Callable[[], None]:
        """Return the call of the generator, pickled where it runs in another process."""
        files = [(marshaller, file.get_fs_path()) for marshaller, file in self.returns]
        generator = RemoteGenerator(self.thunk, self.thunk_args, self.thunk_kwargs, files)
        if self.concurrency is not ActionConcurrency.PROCESS:
            return generator
        origin = Origin.of(self.thunk)
        return partial(call_pickled, origin.path if origin else None, dumps(origin, generator))


_STARTING = threading.Lock()


def _can_start(dep: object) -> bool:
    return (
        isinstance(dep, TurbineBuilderAction)
        and dep.concurrency is ActionConcurrency.PROCESS
        and not dep.deps
        and dep._generation is None
    )


@register_arg_parser_callback  # type: ignore[untyped-decorator]
def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--generate-jobs",
        type=int,
        metavar="N",
        help="How many generators of turbine_generate run at once (default: one for each core)",
    )


def _stated_processes() -> int:
    try:
        stated = getattr(current_args_namespace(), "generate_jobs", None)
    except AssertionError:  # the build was not started from a command line
        stated = None
    if stated is not None and stated < 1:
        raise ExportError(f"--generate-jobs must be 1 or more, got {stated}")
    return stated or available_cpus()


# For messages


def _name_of(generator: Callable[..., Any]) -> str:
    named = generator if hasattr(generator, "__qualname__") else type(generator)
    return f"{getattr(named, '__qualname__', named)}()"


def _location_of(generator: Callable[..., Any]) -> SourceLocation | None:
    is_function = inspect.isfunction(generator)
    return location_of_function(generator if is_function else type(generator).__call__)


def _listed(kinds: Sequence[type]) -> str:
    return (
        f"({', '.join(kind.__name__ for kind in kinds)})"
        if len(kinds) != 1
        else (kinds[0].__name__)
    )
