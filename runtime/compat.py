"""Private names of CPython, IREE's runtime and torch: nothing else of the runtime uses one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any


def interpreter_dict() -> dict[Any, Any]:
    """Return the dictionary that CPython keeps for extensions until the interpreter ends.

    It is cleared after the last garbage collection, the globals of modules before it.
    """
    api = ctypes.PyDLL(None)
    api.PyInterpreterState_Get.restype = ctypes.c_void_p
    api.PyInterpreterState_GetDict.argtypes = [ctypes.c_void_p]
    api.PyInterpreterState_GetDict.restype = ctypes.c_void_p
    address = api.PyInterpreterState_GetDict(api.PyInterpreterState_Get())
    held: dict[Any, Any] = ctypes.cast(address, ctypes.py_object).value
    return held


def disable_leak_checker() -> None:
    """Let IREE's binding print nothing at exit about objects that are still there."""
    import iree.runtime

    iree.runtime._binding.disable_leak_checker()


def dlpack_importer(torch: Any) -> Callable[[Any], Any]:
    """Return what makes a tensor of a DLPack capsule, without a check that it is one.

    Args:
        torch: The module.
    """
    importer: Callable[[Any], Any] = getattr(
        torch._C, "_from_dlpack", torch.utils.dlpack.from_dlpack
    )
    return importer


def cpuinfo_tool() -> Path:
    """Return the path of `iree-cpuinfo`, which prints the features that IREE detects.

    Raises:
        ImportError: IREE's runtime is not installed.
    """
    import iree.runtime  # only here: programs of other engines run without it

    return Path(iree.runtime.__file__).parent.parent / "_runtime_libs" / "iree-cpuinfo"
