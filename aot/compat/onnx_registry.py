"""The operators that torch.onnx has a form for."""

from __future__ import annotations

import importlib

from torch.export import ExportedProgram

from .operators import OpOverload

_EXPORTER = "torch.onnx._internal.exporter"


def operators_without_form(program: ExportedProgram, opset: int) -> list[OpOverload]:
    """Return the calls of operators that torch.onnx has no form for, after its decompositions.

    Args:
        program: The program, as it is given to `torch.onnx.export`.
        opset: The version of ONNX's operators.
    """
    registration = importlib.import_module(f"{_EXPORTER}._registration")
    decompositions = importlib.import_module(f"{_EXPORTER}._decomp")
    registry = registration.ONNXRegistry.from_torchlib(opset_version=opset)
    known = decompositions.get_onnx_implemented_overloads(registry)
    table = decompositions.create_onnx_friendly_decomposition_table(known)
    graph = program.run_decompositions(table).graph
    targets = [node.target for node in graph.nodes if node.op == "call_function"]
    return [
        target
        for target in targets
        if isinstance(target, OpOverload) and not registry.is_registered(target)
    ]
