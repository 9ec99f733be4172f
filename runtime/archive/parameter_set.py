"""Parameter sets: parameters by name, and their indices and providers for IREE."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ParameterError
from . import irpa
from .layout import DATA_ALIGNMENT
from .parameter import Parameter


class ParameterSet(Mapping[str, Parameter]):
    """Parameters by name, from one or more files or from memory.

    Args:
        parameters: The parameters, each name once.
        origin: Their source, for messages.

    Raises:
        ParameterError: A name occurs twice.

    Example:
        >>> from pelton.runtime.parameter import parameter_of
        >>> given = ParameterSet([parameter_of("bias", np.zeros(2, np.float32))])
        >>> str(given["bias"]), len(given), given.nbytes
        ('bias (float32 2)', 1, 8)
    """

    def __init__(self, parameters: Iterable[Parameter], origin: str = "memory") -> None:
        self.origin = origin
        self._parameters: dict[str, Parameter] = {}
        self._aligned: dict[Hashable, NDArray[np.uint8]] = {}
        twice = []
        for parameter in parameters:
            if parameter.name in self._parameters:
                twice.append(parameter.name)
            self._parameters[parameter.name] = parameter
        if twice:
            names = ", ".join(map(repr, twice))
            raise ParameterError(f"these parameters come more than once in {origin}: {names}")

    def __getitem__(self, name: str) -> Parameter:
        try:
            return self._parameters[name]
        except KeyError:
            raise KeyError(f"no parameter {name!r} in {self.origin}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __repr__(self) -> str:
        return f"ParameterSet({len(self)} parameters, {self.nbytes} bytes, from {self.origin})"

    @property
    def nbytes(self) -> int:
        """The bytes of all contents; tied tensors count once, splats not at all."""
        sizes = {p.identity() or p.name: p.nbytes for p in self.values() if not p.splat}
        return sum(sizes.values())

    def index(self, names: Iterable[str] | None = None, *, writable: bool = False) -> Any:
        """Return an `iree.runtime.ParameterIndex` over the same memory.

        Contents are copied only where they are strided or on another device. The index, and the
        providers made of it, hold references to the memory.

        Args:
            names: The parameters to add; all by default.
            writable: Programs may write to them.
        """
        import iree.runtime

        index = iree.runtime.ParameterIndex()
        for name in self if names is None else names:
            add_to_index(index, self[name], writable=writable)
        return index

    def provider(
        self, scope: str, names: Iterable[str] | None = None, *, in_place: bool = True
    ) -> Any:
        """Return an `iree.runtime.ParameterProvider` of these parameters.

        Args:
            scope: The scope of the parameters in the program.
            names: The parameters that the program needs; all by default.
            in_place: Whether the device uses the memory of the host. Contents that are not aligned
                to `DATA_ALIGNMENT` bytes are then copied, once for all providers of this set.
                Archives of Pelton and torch tensors are aligned.
        """
        import iree.runtime

        index = iree.runtime.ParameterIndex()
        for name in self if names is None else names:
            parameter = self[name]
            copied = self._aligned_copy(parameter) if in_place else None
            add_to_index(index, parameter, contents=copied)
        return index.create_provider(scope)

    def _aligned_copy(self, parameter: Parameter) -> NDArray[np.uint8] | None:
        """Return an aligned copy of a parameter; None where it can be used in place."""
        data = parameter.data
        if parameter.splat or not parameter.nbytes:
            return None
        if (
            isinstance(data, np.ndarray)
            and data.flags.c_contiguous
            and data.ctypes.data % DATA_ALIGNMENT == 0
        ):
            return None
        key = parameter.identity()
        if key not in self._aligned:
            self._aligned[key] = _aligned_copy(parameter)
        return self._aligned[key]


def add_to_index(
    index: Any,
    parameter: Parameter,
    *,
    contents: NDArray[np.uint8] | None = None,
    readable: bool = True,
    writable: bool = False,
) -> None:
    """Add one parameter to an `iree.runtime.ParameterIndex`, over the same memory.

    Args:
        index: The index.
        parameter: The parameter.
        contents: The bytes to use instead of the parameter's own.
        readable: Programs may read it.
        writable: Programs may write to it.
    """
    about = irpa.metadata(parameter)
    if parameter.splat:
        index.add_splat(parameter.name, parameter.data, parameter.nbytes, about)
    else:
        data = parameter.contents() if contents is None else contents
        index.add_buffer(parameter.name, data, readable, writable, about)


def _aligned_copy(parameter: Parameter) -> NDArray[np.uint8]:
    memory = np.empty(parameter.nbytes + DATA_ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % DATA_ALIGNMENT
    copied = memory[start : start + parameter.nbytes]
    end = 0
    for chunk in parameter.chunks():
        copied[end : end + len(chunk)] = chunk
        end += len(chunk)
    return copied
