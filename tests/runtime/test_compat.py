"""Contracts of CPython, IREE's runtime and torch, for the runtime."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import torch

from pelton.runtime.compat import (
    cpuinfo_tool,
    disable_leak_checker,
    dlpack_importer,
    interpreter_dict,
)
from tests.contracts import contract


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@contract("PyInterpreterState_GetDict", breaks="results that are freed after their device")
def test_dictionary_of_the_interpreter_goes_last() -> None:
    held = interpreter_dict()
    assert interpreter_dict() is held
    done = run(
        """
        import os
        from pelton.runtime.compat import interpreter_dict

        # With globals of its own: methods hold theirs, and so those of this module would stay.
        names = {"write": os.write}
        exec("class Noted:\\n def __del__(self, write=write): write(1, self.name)", names)

        def noted(name):
            made = names["Noted"]()
            made.name = name
            return made

        interpreter_dict()["contract"] = noted(b"device ")
        result = noted(b"result ")
        cycle = [noted(b"cycle ")]
        cycle.append(cycle)
        del cycle
        """
    )
    assert done.stdout.split()[-1] == "device", done.stdout + done.stderr
    assert set(done.stdout.split()) == {"result", "cycle", "device"}


@contract("iree.runtime._binding.disable_leak_checker", breaks="silence at exit of torch.compile")
def test_objects_that_stay_are_not_reported() -> None:
    code = """
        import ctypes, iree.runtime
        from pelton.runtime.compat import {name}
        {call}
        kept = iree.runtime.VmInstance()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    """
    name = disable_leak_checker.__name__
    assert "leak" in run(code.format(name=name, call="")).stderr
    assert run(code.format(name=name, call=f"{name}()")).stderr == ""


@contract("torch._C._from_dlpack", breaks="results as torch tensors")
def test_capsule_becomes_a_tensor_of_the_same_memory() -> None:
    given = torch.arange(4.0)
    made = dlpack_importer(torch)(torch.utils.dlpack.to_dlpack(given))
    made[0] = 7.0
    assert given.tolist() == [7.0, 1.0, 2.0, 3.0]


@contract("_runtime_libs/iree-cpuinfo", breaks="processor_features, which refuses foreign programs")
def test_tool_prints_a_feature_and_whether_it_is_there() -> None:
    done = subprocess.run([cpuinfo_tool()], capture_output=True, text=True, timeout=60, check=True)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert rows and {row[1] for row in rows if len(row) == 2} <= {"0", "1"}
