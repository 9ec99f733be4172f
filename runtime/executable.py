"""Executables: compiled artifacts that are loaded and called."""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from .artifacts.manifest import Manifest
from .artifacts.vmfb import VmfbInfo
from .call import pytrees
from .call.binding import Binder
from .call.input_infos import Info, input_infos
from .call.signature import STATE_GET, STATE_SET, Signature
from .engines.engine import LoadedModule, Run
from .engines.loaders import LOADERS
from .errors import ArtifactError, PeltonError, SignatureError
from .files import FileKind, StrPath, atomic_write, sniff


def load(
    path_or_bytes: StrPath | bytes | bytearray | memoryview,
    *,
    device: str | Sequence[str] | None = None,
    parameters: Any = None,
    allow_unused_parameters: bool = False,
) -> Executable:
    """Load a compiled artifact.

    Args:
        path_or_bytes: A `.vmfb` or `.trtm` file, or its bytes.
        device: What to run on, such as `cpu`, `local-sync`, `cuda:0`; by default the first device
            of the kind that the artifact was compiled for. `cpu` is `local-task`, with a thread
            for each CPU, or `local-sync`, the caller's thread, where only one may be used.
            For an artifact of several devices, a sequence in the order of their numbers, such as
            `["cpu", "cpu"]`, or one CPU that stands for all of them. `reference` runs the
            ONNX graphs of a `.trtm` on the CPU.
        parameters: Where external parameters come from: the path of an archive, a list of paths, a
            mapping of names to arrays (such as a `state_dict`), or `{scope: any of these}`.
        allow_unused_parameters: Accept parameters that the artifact does not use, for artifacts
            that share one archive and use a part each.

    Returns:
        The executable, ready to be called.

    Raises:
        ArtifactError: The file is missing, damaged, or not a compiled artifact.
        DeviceError: There is no such device, or the artifact was made for another one.
        ParameterError: Parameters are missing, not needed, or of another type or shape.

    Example:
        >>> load("missing.vmfb")
        Traceback (most recent call last):
        ...
        pelton.runtime.errors.ArtifactError: no such file: missing.vmfb
    """
    if not isinstance(path_or_bytes, (bytes, bytearray, memoryview)):
        path = Path(path_or_bytes)
        return Executable(_load_file(path, device, parameters, allow_unused_parameters))
    handle, name = tempfile.mkstemp(suffix=".pelton")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(path_or_bytes)
        # The mapping holds the data; the name is not needed once the file is mapped.
        return Executable(_load_file(Path(name), device, parameters, allow_unused_parameters))
    except PeltonError as error:
        error.args = (str(error).replace(name, "the module in memory"),)
        raise
    finally:
        os.unlink(name)


def _load_file(
    path: Path,
    device: str | Sequence[str] | None,
    parameters: Any,
    allow_unused_parameters: bool,
) -> LoadedModule:
    kind = sniff(path)
    if kind in (FileKind.MLIR_TEXT, FileKind.MLIR_BYTECODE):
        raise ArtifactError(f"{path} is {kind.value}, which must be compiled first: pelton compile")
    if kind not in LOADERS:
        raise ArtifactError(f"{path} is not a compiled module: its content is {kind.value}")
    return LOADERS[kind](path, device, parameters, allow_unused_parameters)


class Executable:
    """A loaded artifact. Its entry points are attributes; with only one, it is callable itself.

    Any number of threads may call it. Results belong to the caller and outlive the executable.
    Calls of a module with state are serialised.

    Args:
        module: The artifact, loaded by an engine.

    Raises:
        ArtifactError: The artifact has no entry point with a signature of Pelton.

    Example:
        >>> import pelton.runtime
        >>> exe = pelton.runtime.load(SAMPLE_VMFB)
        >>> exe(np.ones(2, np.float32))
        array([2., 2.], dtype=float32)
    """

    def __init__(self, module: LoadedModule) -> None:
        self._module = module
        signatures = module.signatures()
        state_names = [n.removeprefix(STATE_GET) for n in signatures if n.startswith(STATE_GET)]
        stateful = bool(state_names) or any(s.mutates for s in signatures.values())
        made = {
            name: Function(signature, module.function(signature, stateful))
            for name, signature in signatures.items()
        }
        entry_points = {n: f for n, f in made.items() if not n.startswith((STATE_GET, STATE_SET))}
        if not entry_points:
            raise ArtifactError(
                f"{module.path} has no entry point with a Pelton signature; "
                "compile it with pelton, or run it with IREE's own tools"
            )
        self._functions = MappingProxyType(entry_points)
        self._single = next(iter(entry_points.values())) if len(entry_points) == 1 else None
        self._state = State(
            {name: (made[STATE_GET + name], made[STATE_SET + name]) for name in state_names}
        )

    @property
    def functions(self) -> Mapping[str, Function]:
        """The entry points by name."""
        return self._functions

    @property
    def info(self) -> VmfbInfo | Manifest:
        """The metadata of the artifact: target, versions, parameters."""
        return self._module.info

    @property
    def device(self) -> str:
        """The device that it runs on, such as `local-task`, `cuda:0` or `reference`.

        Several are separated by commas.
        """
        return self._module.device_names

    @property
    def state(self) -> State:
        """The state between calls, by name; read and written as tensors."""
        return self._state

    @property
    def stream(self) -> int | None:
        """The handle of the CUDA stream that calls run on.

        None on CPUs, and where the streams of the engine are private and a call returns only when
        its results are complete (IREE).
        """
        return self._module.stream

    @property
    def input_infos(self) -> dict[str, Info]:
        """Element type, bounds and dimension names of each input, by path; see `Function`.

        Raises:
            SignatureError: There are several entry points.
        """
        return self._only().input_infos

    @property
    def __signature__(self) -> inspect.Signature:
        return self._only().signature.python()

    def reset_state(self) -> None:
        """Reset the state to its initial value."""
        self._module.reset()

    def save(self, path: StrPath) -> None:
        """Write the artifact to `path`, atomically.

        Raises:
            ArtifactError: The folder does not exist.
        """
        with atomic_write(path) as target:
            self._module.copy_to(target)

    @staticmethod
    def load(
        path: StrPath | bytes,
        *,
        device: str | Sequence[str] | None = None,
        parameters: Any = None,
        allow_unused_parameters: bool = False,
    ) -> Executable:
        """Load an artifact, as `pelton.runtime.load` does.

        Args:
            path, device, parameters, allow_unused_parameters: As for `pelton.runtime.load`.
        """
        return load(
            path,
            device=device,
            parameters=parameters,
            allow_unused_parameters=allow_unused_parameters,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the only entry point.

        Raises:
            SignatureError: The arguments do not fit, or there are several entry points.
        """
        return (self._single or self._only())(*args, **kwargs)

    def __getattr__(self, name: str) -> Function:
        functions = self.__dict__.get("_functions", {})
        if name in functions:
            found: Function = functions[name]
            return found
        raise AttributeError(f"no entry point {name!r}; there are: {', '.join(functions)}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._functions]

    def __str__(self) -> str:
        lines = "\n".join(f"  {function.signature}" for function in self._functions.values())
        return f"Executable on {self.device}:\n{lines}"

    __repr__ = __str__

    def _only(self) -> Function:
        if self._single is not None:
            return self._single
        raise SignatureError(
            f"there are {len(self._functions)} entry points; call one by name: "
            f"{', '.join(self._functions)}"
        )


class Function:
    """One entry point of an executable.

    Args:
        signature: Its signature.
        run: Computes the leaves of the result from checked input leaves.
    """

    def __init__(self, signature: Signature, run: Run) -> None:
        self.signature = signature
        self._run = run
        self._binder = Binder(signature)
        self._tree = signature.result_tree

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call with tensors (torch, numpy, or any library with DLPack) and Python numbers.

        Returns:
            Results of the structure at export, as arrays of the first tensor argument's library.

        Raises:
            SignatureError: Names the argument that does not fit, what was expected and given.
        """
        leaves = self._binder.leaves(args, kwargs)
        if not self._binder.fits(leaves):
            self._binder.explain(leaves)
        results = self._run(leaves)
        return results[0] if self._tree == 0 else pytrees.unflatten(self._tree, results)

    def call_leaves(self, leaves: Sequence[Any]) -> list[Any]:
        """Call with the leaves that are inputs at run time, without checks.

        For callers that guarantee types, sizes and constraints, such as compiled code.

        Args:
            leaves: Tensors and numbers, in order.

        Returns:
            The leaves of the result, constants too.
        """
        return self._run(leaves)

    @property
    def name(self) -> str:
        """The name of the entry point."""
        return self.signature.name

    @property
    def input_infos(self) -> dict[str, Info]:
        """Element type, bounds and dimension names of each input, by path such as `cache['k']`."""
        return input_infos(self.signature)

    @property
    def __signature__(self) -> inspect.Signature:
        return self.signature.python()

    def __str__(self) -> str:
        return str(self.signature)

    __repr__ = __str__


class State(MutableMapping[str, Any]):
    """The state of an executable by name. Values are copies: to change one, assign it.

    Args:
        accessors: The getter and the setter, by name.
    """

    def __init__(self, accessors: dict[str, tuple[Function, Function]]) -> None:
        self._accessors = accessors

    def _find(self, name: str) -> tuple[Function, Function]:
        try:
            return self._accessors[name]
        except KeyError:
            known = ", ".join(self._accessors) or "none"
            raise KeyError(f"no state {name!r}; there is: {known}") from None

    def __getitem__(self, name: str) -> Any:
        return self._find(name)[0]()

    def __setitem__(self, name: str, value: Any) -> None:
        self._find(name)[1](value)

    def __delitem__(self, name: str) -> None:
        raise TypeError("state cannot be removed; reset_state() restores the initial values")

    def __iter__(self) -> Iterator[str]:
        return iter(self._accessors)

    def __len__(self) -> int:
        return len(self._accessors)
