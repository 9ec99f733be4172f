"""Attention of narrow floating-point numbers, computed in float32 on processors.

IREE rounds the scaled query to the type of the query, and what is then multiplied with keys may be
off by as much as a unit, which an exponential makes a quarter of a weight (bfloat16, 3.13). torch's
kernels keep the products in float32. On processors float32 is the quicker type as well (attention
over 512 places: 7.9 for 8.6 ms in bfloat16, 6.9 for 11.7 ms in float16); GPUs keep the narrow one,
for which they have units.
"""

from __future__ import annotations

from iree.compiler.ir import Operation

from ....ir.module import operations_within
from .emission import Emitter, tensor_type, with_element

_ATTENTION = "torch.aten.scaled_dot_product_attention"


def upcast_attention(module_op: Operation) -> None:
    """Compute attention of a module, in the torch dialect, in float32 where it is narrower."""
    for op in operations_within(module_op):
        if op.name == _ATTENTION and tensor_type(op.operands[0].type)[1] in ("f16", "bf16"):
            _widen(op)


def _widen(attention: Operation) -> None:
    emit = Emitter(attention)
    narrow = tensor_type(attention.result.type)[1]
    operands = [
        emit.converted(value, "f32") if tensor_type(value.type)[1] == narrow else value
        for value in attention.operands
    ]
    kind = with_element(attention.result.type, "f32")
    wide = emit.make(_ATTENTION.removeprefix("torch."), kind, *operands)
    attention.result.replace_all_uses_with(emit.converted(wide, narrow))
    attention.erase()
