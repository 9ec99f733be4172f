"""IREE modules: a `.vmfb` in a VM context, and calls of its functions."""

from __future__ import annotations

import functools
import shutil
import threading
import weakref
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO

import iree.runtime as iree

from ..archive import archives
from ..artifacts import vmfb
from ..call.binding import Binder
from ..call.signature import SIGNATURE_KEY, ScalarSpec, Signature, TensorSpec
from ..device import hal_arrays
from ..device.devices import Device, open_devices, reason_of
from ..errors import (
    INDEX_OUT_OF_RANGE,
    ArtifactError,
    DeviceError,
    IndexOutOfRangeError,
    ParameterError,
    PeltonError,
    SignatureError,
)

_DEVICE_OF_BACKEND = {
    "llvm-cpu": "cpu",
    "vmvx": "cpu",
    "cuda": "cuda",
    "rocm": "rocm",
    "vulkan-spirv": "vulkan",
}


def load_vmfb(
    path: Path,
    device: str | Sequence[str] | None,
    parameters: Any,
    allow_unused_parameters: bool,
) -> IreeModule:
    """Load a `.vmfb`.

    Args:
        path: The file.
        device: The device or devices, as for `runtime.load`; None: the first of the target's kind.
        parameters: Where external parameters come from, as for `runtime.load`.
        allow_unused_parameters: Accept parameters that the module does not use.

    Raises:
        ArtifactError: The file is missing, damaged, or of another version.
        DeviceError: There is no such device, or the file was compiled for another one.
        ParameterError: Parameters are missing, not needed, or of another type or shape.
    """
    info = vmfb.read_info(path)
    backend = str(info.target.get("backend", "llvm-cpu"))
    named = device or _DEVICE_OF_BACKEND.get(backend)
    if named is None:
        raise DeviceError(f"{path} was compiled for {backend!r}; name the device to run it on")
    devices = _open_devices(path, named, info.devices)
    return IreeModule(path, info, devices, parameters, allow_unused_parameters)


def _open_devices(path: Path, named: str | Sequence[str], count: int) -> tuple[Device, ...]:
    """Open the devices that an artifact runs on.

    Args:
        path: The artifact, for messages.
        named: The user's device or devices.
        count: How many devices the artifact is for.
    """
    names = [named] * count if isinstance(named, str) else list(named)
    if len(names) != count:
        raise DeviceError(
            f"{path} is for {count} {'device' if count == 1 else 'devices'}, device= names "
            f"{len(names)}: {', '.join(names) or 'none'}"
        )
    devices = open_devices(names)
    if count > 1 and not all(device.is_cpu for device in devices):
        raise DeviceError(
            f"{path} is for {count} devices; several devices of a program must be CPUs, as "
            f"in device={['cpu'] * count}, got {', '.join(names)}"
        )
    return devices


@functools.lru_cache(maxsize=1)
def _instance() -> Any:
    return iree.VmInstance()


class IreeModule:
    """A loaded `.vmfb`: one VM context, its functions, and its state.

    Args:
        path: The file; it stays mapped while the module lives.
        info: The metadata of the file.
        devices: The opened devices, in the order of their numbers in the program.
        parameters: Where the external parameters come from, as for `runtime.load`.
        allow_unused_parameters: Accept parameters that the module does not use.

    Raises:
        ArtifactError: The file is damaged or of a version that this runtime cannot read.
        DeviceError: The file was made for another processor or device.
        ParameterError: External parameters are missing or do not fit.
    """

    def __init__(
        self,
        path: Path,
        info: vmfb.VmfbInfo,
        devices: Sequence[Device],
        parameters: Any = None,
        allow_unused_parameters: bool = False,
    ) -> None:
        vmfb.check_cpu(info, str(path))
        self.path = path
        self.info = info
        self.stream: int | None = None
        """None: the streams of IREE's devices are private."""
        self.devices = tuple(devices)
        self.device = self.devices[0]
        """The device of arguments and results."""
        self._file = open(path, "rb")
        weakref.finalize(self, self._file.close)
        opened = [device.hal for device in self.devices]
        self._modules = [iree.create_hal_module(_instance(), devices=opened)]
        self._keep_alive = self._provide_parameters(parameters, allow_unused_parameters)
        self.vm_module = self._open_bytecode()
        self._modules.append(self.vm_module)
        self.context = self._new_context()
        self.lock = threading.RLock()
        """Held for calls of functions that touch state, so that concurrent calls are serialised."""

    @property
    def device_names(self) -> str:
        """The devices, separated by commas."""
        return ", ".join(map(str, self.devices))

    def _provide_parameters(self, parameters: Any, allow_unused: bool) -> Any:
        needed = self.info.parameters
        given = archives.load_parameters(parameters, tuple(needed) or ("model",))
        if self.info.versions:  # else another tool made the module: its parameters are unknown
            archives.check_parameters(needed, given, allow_unused=allow_unused)
        in_place = self.device.is_cpu
        providers = [
            source.provider(scope, needed.get(scope), in_place=in_place)
            for scope, source in given.items()
        ]
        if providers:
            self._modules.append(iree.create_io_parameters_module(_instance(), *providers))
        return given

    def _open_bytecode(self) -> Any:
        try:
            return iree.VmModule.mmap(_instance(), str(self.path))
        except (ValueError, RuntimeError, IndexError, KeyError, NotImplementedError) as error:
            raise ArtifactError(
                f"{self.path} is not a module that IREE {version('iree-base-runtime')} can read "
                f"(made by {_versions(self.info.versions)}): {reason_of(error)}"
            ) from error

    def _new_context(self) -> Any:
        try:
            return iree.VmContext(_instance(), self._modules)
        except (ValueError, RuntimeError, IndexError, KeyError) as error:
            text = reason_of(error)
            if "io_parameters" in text or "parameter" in text:
                raise ParameterError(f"{self.path} needs external parameters: {text}") from error
            target = vmfb.describe_target(self.info.target)
            raise DeviceError(
                f"{self.path}, compiled for {target}, cannot run on {self.device_names}: {text}"
            ) from error

    def signatures(self) -> dict[str, Signature]:
        """Return the signature of each entry point and state accessor, by name.

        Raises:
            ArtifactError: A signature in the file is damaged.
        """
        found = {}
        for name in self.vm_module.function_names:
            if name.endswith("$async") or name == "__init":
                continue
            reflection = self.vm_module.lookup_function(name).reflection
            text = reflection.get(SIGNATURE_KEY)
            if text is not None:
                found[name] = self._read_signature(name, text)
        return found

    def _read_signature(self, name: str, text: str) -> Signature:
        try:
            signature = Signature.from_json(text)
        except ArtifactError as error:
            raise ArtifactError(f"{self.path}: entry point {name!r}: {error}") from error
        if signature.name != name:
            raise ArtifactError(
                f"{self.path}: entry point {name!r} has the signature of {signature.name!r}"
            )
        return signature

    def copy_to(self, target: BinaryIO) -> None:
        """Write the bytes of the file that was loaded, even if it was unlinked since."""
        with self.lock:
            self._file.seek(0)
            shutil.copyfileobj(self._file, target)

    def reset(self) -> None:
        """Reset the state to its initial value."""
        with self.lock:
            self.context = self._new_context()

    def function(self, signature: Signature, stateful: bool) -> IreeFunction:
        """Return the function with `signature`."""
        return IreeFunction(self, signature, stateful)


class IreeFunction:
    """One function of a module: leaves in, leaves out.

    Args:
        module: The module that it belongs to.
        signature: Its signature.
        stateful: Whether the module has state, so that calls are serialised.
    """

    def __init__(self, module: IreeModule, signature: Signature, stateful: bool) -> None:
        self._module = module
        self._function = module.vm_module.lookup_function(signature.name)
        self._name = signature.name
        self._signature = signature
        inputs = Binder(signature).runtime_inputs
        self._inputs = tuple(signature.inputs[index] for index in inputs)
        self._results = signature.results
        self._stateful = stateful
        # IREE returns from a call once its results are complete; work on state may still read the
        # arguments. So a function that writes state reads private copies.
        self._copy = bool(signature.mutates) or signature.overwrites_inputs

    def __call__(self, leaves: Sequence[Any]) -> list[Any]:
        """Call with checked input leaves; return one value for each leaf of the result."""
        device = self._module.device
        arguments = iree.VmVariantList(len(leaves))
        library: hal_arrays.HalArrays | None = None
        borrowed: list[tuple[int, Any]] = []
        for spec, leaf in zip(self._inputs, leaves, strict=True):
            if isinstance(spec, TensorSpec):
                own = hal_arrays.arrays_for(leaf)
                library = library or own
                try:
                    view, address = own.to_view(device, leaf, spec.dtype, self._copy)
                except (DeviceError, SignatureError) as error:
                    raise type(error)(f"{self._path_of(arguments.size)}: {error}") from None
                arguments.push_ref(view)
                if address:
                    borrowed.append((address, view))
            elif isinstance(spec, ScalarSpec) and spec.kind == "float":
                arguments.push_float(float(leaf))
            else:
                arguments.push_int(int(leaf))
        results = iree.VmVariantList(len(self._results))
        module = self._module
        try:
            if self._stateful:
                with module.lock:
                    module.context.invoke(self._function, arguments, results)
            else:
                module.context.invoke(self._function, arguments, results)
        except (RuntimeError, ValueError, IndexError, NotImplementedError) as error:
            raise _runtime_error(self._name, error) from error
        return self._convert(results, library or hal_arrays.default_arrays(), borrowed)

    def _path_of(self, position: int) -> str:
        """Return the name of an input in messages."""
        index = Binder(self._signature).runtime_inputs[position]
        return f"{self._name}(): argument {self._signature.input_paths()[index]}"

    def _convert(
        self, results: Any, library: hal_arrays.HalArrays, borrowed: Sequence[tuple[int, Any]]
    ) -> list[Any]:
        """Return the results; one that aliases the memory of an argument is copied.

        Args:
            results: The VM list of results.
            library: The array library of the results.
            borrowed: The address and the view of each argument whose memory IREE borrows.
        """
        device = self._module.device
        values: list[Any] = []
        position = 0
        for spec in self._results:
            if isinstance(spec, TensorSpec):
                view = results.get_as_object(position, iree.HalBufferView)
                value = library.from_view(device, view, spec.dtype)
                if borrowed and _aliases(library.address(value), borrowed):
                    value = library.copy(value)
                values.append(value)
            elif isinstance(spec, ScalarSpec):
                value = results.get_variant(position)
                values.append(bool(value) if spec.kind == "bool" else value)
            else:
                values.append(spec.value)
                continue  # constants are in the signature, not among the results
            position += 1
        return values


def _aliases(address: int, borrowed: Sequence[tuple[int, Any]]) -> bool:
    """Tell whether an address is within the memory of an argument."""
    for start, view in borrowed:
        if start <= address and address - start < view.byte_length:
            return True
    return False


def _runtime_error(name: str, error: Exception) -> PeltonError:
    text = reason_of(error)
    if "INVALID_ARGUMENT" in str(error) and "tensor" in text:
        return SignatureError(f"{name}(): the runtime refused an argument: {text}")
    if INDEX_OUT_OF_RANGE in text:
        stated = text[text.index(INDEX_OUT_OF_RANGE) :].partition("; [")[0]
        return IndexOutOfRangeError(f"{name}(): {stated}")
    return PeltonError(f"{name}() failed at run time: {text}")


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items()) or "another tool"
