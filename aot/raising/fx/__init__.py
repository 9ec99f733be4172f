"""From functions of a module to torch.fx graphs: each operation back to what it means in torch.

It is the road from MLIR to everything that takes torch graphs: eager runs, ONNX, engines. A graph
comes with names, sizes and bounds of its inputs and outputs, and with state made explicit.
"""

from .calls import operations_run_by
from .function import port_name, raise_function
from .raised import Kind, Port, Raised
from .source import FUNCTIONS, ModuleSource, open_source, symbol_of

__all__ = [
    "FUNCTIONS",
    "Kind",
    "ModuleSource",
    "Port",
    "Raised",
    "open_source",
    "operations_run_by",
    "port_name",
    "raise_function",
    "symbol_of",
]
