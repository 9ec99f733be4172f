"""Attention of narrow floating-point numbers, computed in float32 on processors.

IREE rounds the scaled query to the type of the query, and what is then multiplied with keys may be
off by as much as a unit, which an exponential makes a quarter of a weight (bfloat16, 3.13). torch's
kernels keep the products in float32. On processors float32 is the quicker type as well (attention
over 512 places: 7.9 for 8.6 ms in bfloat16, 6.9 for 11.7 ms in float16); GPUs keep the narrow one,
for which they have units.
"""

from __future__ import annotations

from iree.compiler.ir import Operation, Value

from ..mlir_module import operations_within
from .iree_emission import Emitter, tensor_type

_ATTENTION = "torch.aten.scaled_dot_product_attention"

_NUMBERS = {"f16": 5, "bf16": 15, "f32": 6}
"""torch's numbers of element types."""


def widen_attention(module_op: Operation) -> None:
    """Compute attention of a module, in the torch dialect, in float32 where it is narrower."""
    for op in operations_within(module_op):
        if op.name == _ATTENTION and tensor_type(op.operands[0].type)[1] in ("f16", "bf16"):
            _widen(op)


def _widen(attention: Operation) -> None:
    emit = Emitter(attention)

    def converted(value: Value, element: str) -> Value:
        kind = str(value.type).rpartition(",")[0]
        number = emit.number(_NUMBERS[element])
        return emit.make("prims.convert_element_type", f"{kind},{element}>", value, number)

    narrow = tensor_type(attention.result.type)[1]
    operands = [
        converted(value, "f32") if tensor_type(value.type)[1] == narrow else value
        for value in attention.operands
    ]
    kind = str(attention.result.type).rpartition(",")[0]
    wide = emit.make(_ATTENTION.removeprefix("torch."), f"{kind},f32>", *operands)
    attention.result.replace_all_uses_with(converted(wide, narrow))
    attention.erase()
