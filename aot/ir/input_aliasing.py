"""Input aliasing: entry points that may write to their inputs, so that callers pass copies.

IREE (3.13) does an operator in place on an argument's own memory when that is its last use: a
scatter into an input overwrites the caller's tensor. Only functions made of operators that never
are done so may borrow the memory of their inputs.
"""

from __future__ import annotations

import dataclasses

from iree.compiler.ir import (
    DictAttr,
    FlatSymbolRefAttr,
    Operation,
    OpResult,
    StringAttr,
    Value,
)

from pelton.runtime.call.signature import SIGNATURE_KEY, Signature

from .builder import ModuleBuilder
from .module import set_signature

_ELEMENTWISE = """
    abs acos acosh add addcdiv addcmul asin asinh atan atan2 atanh bitwise_and bitwise_not
    bitwise_or bitwise_xor celu ceil clamp clamp_max clamp_min cos cosh deg2rad div elu eq erf erfc
    exp exp2 expm1 floor floor_divide fmod ge gelu glu gt hardsigmoid hardswish hardtanh isfinite
    isinf isnan le leaky_relu lerp log log10 log1p log2 log_sigmoid logical_and logical_not
    logical_or logical_xor logit lt masked_fill maximum minimum mish mul nan_to_num ne neg pow
    prelu rad2deg reciprocal relu relu6 remainder round rsqrt rsub selu sigmoid sign silu sin sinh
    softplus sqrt square sub tan tanh threshold trunc where xlogy
""".split()

_CONTRACTIONS = """
    addmm bmm conv1d conv2d conv3d conv_transpose2d convolution dot linear matmul mm mv
    scaled_dot_product_attention
""".split()

_REDUCTIONS = """
    all amax amin any argmax argmin batch_norm group_norm instance_norm layer_norm log_softmax max
    mean min native_batch_norm native_group_norm native_layer_norm prod rms_norm softmax _softmax
    _log_softmax std sum var var_mean avg_pool1d avg_pool2d max_pool2d adaptive_avg_pool1d
    adaptive_avg_pool2d linalg_vector_norm
""".split()

_MOVEMENT = """
    alias arange cat chunk clone contiguous detach embedding empty empty_like expand expand_as
    flatten flip full full_like gather index index_select new_empty new_full new_ones new_zeros
    numel ones ones_like permute repeat reshape scalar_tensor select size slice split
    split_with_sizes squeeze stack t to transpose tril triu type_as unflatten unsqueeze view
    view_as _reshape_alias _to_copy _unsafe_view unbind zeros zeros_like ScalarImplicit Int
    Float Bool len item dropout native_dropout
""".split()

_READING = frozenset(
    f"torch.aten.{name}" for name in (*_ELEMENTWISE, *_CONTRACTIONS, *_REDUCTIONS, *_MOVEMENT)
)
"""Operators of the torch dialect, without overload, that never write to an operand."""

_PLAIN = ("torch.constant.", "torch.prim.", "torch_c.", "arith.", "math.", "torch.prims.")
_OTHER = frozenset(
    ["torch.symbolic_int", "torch.bind_symbolic_shape", "torch.vtensor.literal",
     "util.global.load", "util.status.check_ok", "func.return", "scf.if", "scf.yield",
     "tensor.cast", "tensor.dim", "tensor.empty", "flow.tensor.trace", "flow.tensor.transfer"]
)  # fmt: skip

_INTO_OUTPUTS = ("linalg.generic", "linalg.fill")
"""Operations that write to their output operands only."""

_FRESH = ("tensor.empty", "linalg.fill")


def mark_input_aliasing(builder: ModuleBuilder) -> None:
    """Mark each entry point that may write to its inputs, in its signature."""
    functions = {
        StringAttr(op.attributes["sym_name"]).value: op.operation
        for op in builder.body.operations
        if op.operation.name == "func.func"
    }
    judged: dict[str, bool] = {}
    for function in functions.values():
        signature = _signature_of(function)
        if (
            signature is not None
            and signature.inputs
            and not _only_reads(function, functions, judged)
        ):
            stated = dataclasses.replace(signature, overwrites_inputs=True)
            set_signature(function, stated)


def _signature_of(function: Operation) -> Signature | None:
    if "iree.reflection" not in function.attributes:
        return None
    reflection = DictAttr(function.attributes["iree.reflection"])
    if SIGNATURE_KEY not in reflection:
        return None
    return Signature.from_json(StringAttr(reflection[SIGNATURE_KEY]).value)


def _only_reads(
    function: Operation, functions: dict[str, Operation], judged: dict[str, bool]
) -> bool:
    name = StringAttr(function.attributes["sym_name"]).value
    if name not in judged:
        judged[name] = False  # a function that calls itself is not looked into again
        judged[name] = _regions_read(function, functions, judged)
    return judged[name]


def _regions_read(
    operation: Operation, functions: dict[str, Operation], judged: dict[str, bool]
) -> bool:
    """Return whether all operations in the regions (branches, loops) of an operation only read."""
    blocks = [block for region in operation.regions for block in region.blocks]
    return all(
        _operation_reads(op.operation, functions, judged)
        for block in blocks
        for op in block.operations
    )


def _is_fresh(value: Value) -> bool:
    """Return whether a value is a fresh buffer of the program, which aliases no argument."""
    return isinstance(value, OpResult) and value.owner.name in _FRESH


def _operation_reads(
    operation: Operation, functions: dict[str, Operation], judged: dict[str, bool]
) -> bool:
    name = operation.name
    if name == "func.call":
        callee = FlatSymbolRefAttr(operation.attributes["callee"]).value
        return callee in functions and _only_reads(functions[callee], functions, judged)
    if name in _INTO_OUTPUTS:
        return all(_is_fresh(value) for value in operation.opview.outputs)
    if not _regions_read(operation, functions, judged):
        return False
    if name.startswith("torch.aten."):
        return ".".join(name.split(".")[:3]) in _READING
    return name in _OTHER or name.startswith(_PLAIN)
