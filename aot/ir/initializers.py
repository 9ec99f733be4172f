"""Initializers of globals: zero values, and buffers that mutable globals do not share."""

from __future__ import annotations

import re

from iree.compiler.ir import (
    Attribute,
    Context,
    InsertionPoint,
    Module,
    Operation,
    RankedTensorType,
    Type,
)

from ..spec.errors import ExportError
from .torch_types import TensorType


def zero_attribute(type_: Type, context: Context) -> Attribute:
    """Return the attribute of the value zero of a scalar or static tensor type.

    Raises:
        ExportError: The type is a tensor of dynamic shape or of complex numbers.
    """
    text = str(type_)
    tensor = TensorType.parse_builtin(text)
    if tensor is not None:
        if not tensor.is_static:
            raise ExportError(
                "Cannot create initialization value for dynamic shaped tensor "
                f"{text}; give it a static shape or uninitialized=True"
            )
        if tensor.element.startswith("complex"):  # MLIR's Python API cannot make such attributes
            raise ExportError(f"cannot start {text} as zero by itself; give it torch.zeros(...)")
        return Attribute.parse(f"dense<{_zero(tensor.element)}> : {text}", context)
    return Attribute.parse("false" if text == "i1" else f"{_zero(text)} : {text}", context)


def _zero(element: str) -> str:
    if element == "i1":
        return "false"
    return "0" if element.startswith(("i", "ui", "si")) else "0.0"


def zero_initializer(symbol: str, type_: RankedTensorType, ip: InsertionPoint) -> Operation:
    """Add an initializer that gives a mutable global of zeros a buffer of its own.

    IREE (3.13) lets globals that start as equal splats share one buffer, even mutable ones; an
    update in place of one then changes the other. A zero that it cannot see through does not.

    Args:
        symbol: The global's name.
        type_: The type of its value.
        ip: Where it goes.
    """
    bits = _bits(str(type_.element_type))
    word = f"i{min(bits, 64)}"  # IREE has numbers of 16 bits in tensors only
    words = TensorType((*type_.shape, *([2] if bits > 64 else [])), word).builtin()
    text = f"""
        util.global private mutable @"{symbol}" : {type_}
        util.initializer {{
          %0 = arith.constant 0 : {word}
          %1 = util.optimization_barrier %0 : {word}
          %2 = flow.tensor.splat %1 : {words}
          %3 = flow.tensor.bitcast %2 : {words} -> {type_}
          util.global.store %3, @"{symbol}" : {type_}
          util.return
        }}"""
    return _initializer(text, ip)


def copy_initializer(symbol: str, type_: RankedTensorType, ip: InsertionPoint) -> Operation:
    """Add an initializer that gives a mutable global of an archive's values a buffer of its own.

    IREE (3.13) lets the global be the archive's memory, also when it is updated in place: a file
    that is mapped for reading, or a tensor of the caller. Choosing by a bool that it cannot know
    is a copy that it does not elide.

    Args:
        symbol: The global's name.
        type_: The type of its value.
        ip: Where it goes.
    """
    bools = TensorType(tuple(type_.shape), "i1").builtin()
    text = f"""
        util.global private mutable @"{symbol}" : {type_}
        util.initializer {{
          %true = arith.constant true
          %hidden = util.optimization_barrier %true : i1
          %choice = flow.tensor.splat %hidden : {bools}
          %given = util.global.load @"{symbol}" : {type_}
          %other = flow.tensor.empty : {type_}
          %own = arith.select %choice, %given, %other : {bools}, {type_}
          util.global.store %own, @"{symbol}" : {type_}
          util.return
        }}"""
    return _initializer(text, ip)


def _initializer(text: str, ip: InsertionPoint) -> Operation:
    """Add the initializer of a text with a global and an initializer of it."""
    parsed = Module.parse(text, ip.block.owner.context)
    return parsed.body.operations[1].operation.clone(ip)


def _bits(element: str) -> int:
    """Return the width of an element type from its name.

    Example:
        >>> _bits("bf16"), _bits("f8E4M3FN"), _bits("complex<f64>")
        (16, 8, 128)
    """
    number = re.search(r"\d+", element)
    assert number is not None, element
    return int(number[0]) * (2 if element.startswith("complex") else 1)
