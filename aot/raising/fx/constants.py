"""Constants of a module, as torch tensors and Python scalars."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from iree.compiler.ir import BoolAttr, FloatAttr, IntegerAttr, Operation

from ...spec.errors import ArtifactError, UnsupportedOpError
from .bytecode import read_blobs

_RESOURCE = re.compile(r'dense_resource<"?(?P<name>.+?)"?> : ')
_DENSE = re.compile(r"dense<(?P<values>.*)> : tensor<", re.DOTALL)
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false")

_BITS = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32, 8: torch.uint64}


class Constants:
    """Reads the values of a module.

    Args:
        module_op: The module.
        resources: Large data that is at hand, by its name in the module.
        bytecode: The file that the module was read from, if that was bytecode.
    """

    def __init__(
        self,
        module_op: Operation,
        resources: Mapping[str, bytes] | None = None,
        bytecode: memoryview | None = None,
    ) -> None:
        self._module_op = module_op
        self._known = dict(resources or {})
        self._bytecode = bytecode
        self._read: dict[str, memoryview] | None = None

    def tensor(
        self, op: Operation, attribute: str, shape: tuple[int, ...], dtype: torch.dtype
    ) -> torch.Tensor:
        """Return the elements of an attribute, without a copy where they are large.

        Args:
            op: The operation that has the attribute.
            attribute: Its name.
            shape: The shape of the value.
            dtype: Its element type; the attribute's own has the same size.

        Raises:
            ArtifactError: The data is not in the module.
            UnsupportedOpError: The attribute is of an unknown kind.
        """
        text = _text_of(op, attribute)
        resource = _RESOURCE.search(text)
        if resource is not None:
            return self._resource(resource["name"], shape, dtype)
        if 0 in shape:
            return torch.empty(shape, dtype=dtype)
        dense = _DENSE.search(text)
        if dense is None:
            raise UnsupportedOpError(f"a constant of an unknown form: {text[:80]}")
        try:
            elements = np.array(op.attributes[attribute])
        except TypeError:  # the bindings read neither complex nor the narrow floats
            return _parsed(dense["values"], shape, dtype)
        found = torch.from_numpy(elements.copy()).reshape(shape)
        return found if found.dtype == dtype else found.view(dtype)

    def _resource(self, name: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        data = self._known.get(name)
        if data is None:
            data = self._blobs().get(name)  # type: ignore[assignment]  # a view serves as well
        if data is None or (len(data) == 0 and 0 not in shape):
            raise ArtifactError(f"the module refers to data {name!r} that it does not hold")
        return borrowed(data, shape, dtype)

    def _blobs(self) -> dict[str, memoryview]:
        if self._read is None:
            if self._bytecode is None:
                buffer = io.BytesIO()
                self._module_op.write_bytecode(buffer)
                self._bytecode = buffer.getbuffer()
            self._read = read_blobs(self._bytecode)
        return self._read


def borrowed(data: Any, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return bytes as a tensor over the same memory, which must not be written to.

    Args:
        data: The bytes, little-endian and contiguous.
        shape: The sizes of the tensor.
        dtype: Its element type.

    Example:
        >>> borrowed(bytes([1, 0, 2, 0]), (2,), torch.int16)
        tensor([1, 2], dtype=torch.int16)
    """
    if len(data) == 0:
        return torch.empty(shape, dtype=dtype)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given buffer is not writable")
        return torch.frombuffer(data, dtype=dtype).reshape(shape)


def number(op: Operation, attribute: str) -> int | float | bool:
    """Return the number in an attribute.

    Raises:
        UnsupportedOpError: It holds something else.
    """
    value = op.attributes[attribute]
    if isinstance(value, BoolAttr):
        return bool(value.value)
    if isinstance(value, IntegerAttr):
        return bool(value.value) if str(value.type) == "i1" else int(value.value)
    if isinstance(value, FloatAttr):
        return float(value.value)
    raise UnsupportedOpError(f"a number of an unknown form: {str(value)[:80]}")


def _text_of(op: Operation, attribute: str) -> str:
    """Return an attribute's text; that of the operation where the bindings refuse the attribute."""
    try:
        return str(op.attributes[attribute])
    except TypeError:
        return str(op)


def _parsed(values: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return the tensor of elements in MLIR's text: hexadecimal of all, or numbers."""
    if values.startswith('"0x'):
        data = bytearray.fromhex(values[3:-1])
        flat = torch.frombuffer(data, dtype=dtype)
    else:
        width = dtype.itemsize // (2 if dtype.is_complex else 1)
        real = dtype.to_real() if dtype.is_complex else dtype
        parts = [_element(text, real, width) for text in _NUMBER.findall(values)]
        flat = torch.stack(parts) if parts else torch.empty(0, dtype=real)
        flat = torch.view_as_complex(flat.reshape(-1, 2)) if dtype.is_complex else flat
    if flat.numel() == 1:
        return flat.reshape(()).expand(shape).clone()
    return flat.reshape(shape)


def _element(text: str, dtype: torch.dtype, width: int) -> torch.Tensor:
    if text.startswith("0x"):  # the bits of what has no decimal form, such as NaN
        return torch.tensor(int(text, 16), dtype=_BITS[width]).view(dtype)
    return torch.tensor(float(text)).to(dtype)
