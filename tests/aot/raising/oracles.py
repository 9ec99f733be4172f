"""What tests of raising share: runs of raised graphs and of ONNX models, beside eager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pelton import aot
from pelton.aot.raising.onnx import OnnxProgram
from pelton.runtime.call import pytrees
from pelton.runtime.call.binding import Binder
from pelton.runtime.call.signature import ConstantSpec
from tests.programs import assert_same


class OnnxRun:
    """An ONNX model called as the function was, by onnxruntime; it keeps the state."""

    def __init__(self, program: OnnxProgram) -> None:
        onnxruntime = pytest.importorskip("onnxruntime")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        model = str(program.path) if program.path else program.to_bytes()
        self.session = onnxruntime.InferenceSession(
            model, options, providers=["CPUExecutionProvider"]
        )
        self.program = program
        self.state = dict(program.initial_state)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        program, binder = self.program, Binder(self.program.signature)
        given = iter(binder.leaves(args, kwargs))
        sources = {"user": lambda port: next(given), "state": lambda port: self.state[port.origin],
                   "parameter": lambda port: program.parameters[port.name]}  # fmt: skip
        feeds = {
            port.name: np.asarray(torch.as_tensor(sources[port.kind](port), dtype=port.dtype))
            for port in program.inputs
        }
        values = self.session.run([port.name for port in program.outputs], feeds)
        results = []
        for port, value in zip(program.outputs, values, strict=True):
            tensor = torch.from_numpy(np.array(value))
            assert tensor.dtype == port.dtype
            if port.kind == "state":
                self.state[port.origin] = tensor
            else:
                results.append(tensor.item() if port.is_scalar else tensor)
        computed = iter(results)
        leaves = [
            leaf.value if isinstance(leaf, ConstantSpec) else next(computed)
            for leaf in program.signature.results
        ]
        return pytrees.unflatten(program.signature.result_tree, leaves)


def forms_of(
    out: aot.ExportOutput, folder: Path, function: str | None = None, *, onnx: bool = True
) -> list[Callable[..., Any]]:
    """Return an entry point raised from the live module and from a file, and as an ONNX model."""
    out.save_mlir(folder / "module.mlirbc")
    live, loaded = aot.to_torch(out), aot.to_torch(folder / "module.mlirbc")
    name = function or next(iter(live.functions))
    forms = [live.functions[name], loaded.functions[name]]
    if onnx:
        pytest.importorskip("onnxscript")
        forms.append(OnnxRun(out.to_onnx(folder / f"{name}.onnx", name)))
    return forms


def assert_all_equal(
    out: aot.ExportOutput,
    folder: Path,
    reference: Callable[..., Any],
    *calls: Sequence[Any],
    function: str | None = None,
    onnx: bool = True,
    **tolerance: float,
) -> None:
    """Compare the forms of an entry point with eager, for several argument tuples."""
    forms = forms_of(out, folder, function, onnx=onnx)
    for args in calls:
        with torch.no_grad():
            expected = reference(*args)
        for form in forms:
            assert_same(form(*args), expected, **tolerance)
