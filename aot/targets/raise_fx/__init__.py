"""From functions of a module to torch.fx graphs: each operation back to what it means in torch.

It is the road from MLIR to everything that takes torch graphs: eager runs, ONNX, engines. A graph
comes with names, sizes and bounds of its inputs and outputs, and with state made explicit.
"""

from .function import port_name, raise_function
from .raised import Kind, Port, Raised
from .scope import LOCATION
from .source import ModuleSource, open_source

__all__ = [
    "LOCATION",
    "Kind",
    "ModuleSource",
    "Port",
    "Raised",
    "open_source",
    "port_name",
    "raise_function",
]
