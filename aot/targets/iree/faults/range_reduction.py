"""Functions that IREE's code for processors computes too roughly, computed exactly.

- Sine, cosine and tangent: IREE reduces the angle to a period with the digits of float32 (3.13). So
  the sine of 9,000 is off by 2e-4, that of 1e9 is 5e9, and that of 1e30 is infinite. Here an angle
  is turned into periods in float64, by the method of Payne and Hanek: it is multiplied by parts of
  1 / (2 pi) so short that products are exact, and each product drops its whole periods. Results are
  within 3e-7 for every float32, in ten times the time (a million in 3.4 ms).
  M. Payne and R. Hanek, "Radian reduction for trigonometric functions", SIGNUM Newsletter 18, 1983.
- The tanh form of GELU: IREE's constants have four digits. D. Hendrycks and K. Gimpel, "Gaussian
  error linear units", arXiv:1606.08415.

GPUs keep the functions of their makers' libraries; some have no float64.
"""

from __future__ import annotations

import functools
import math

from iree.compiler.ir import Operation, StringAttr, Value

from ....ir.module import operations_within
from .emission import Emitter, tensor_type

_TURN = tuple(
    map(
        float.fromhex,
        (
            "0x1.45f306p-3",
            "0x1.b93910p-28",
            "0x1.529fc0p-54",
            "0x1.3abe88p-77",
            "0x1.ea69bap-99",
            "0x1.81b6c4p-123",
            "0x1.2b3278p-147",
        ),
    )
)
"""Parts of 1 / (2 pi) of 24 bits each: their sum is exact to 170 bits behind the point."""

_NARROW = ("f16", "bf16", "f32")


def replace_inexact_functions(module_op: Operation) -> None:
    """Exchange operations of a module, in the torch dialect, for more exact ones."""
    for op in operations_within(module_op):
        function = _FUNCTIONS.get(op.name)
        if function and tensor_type(op.operands[0].type)[1] in _NARROW:
            function(op)


def _circular(op: Operation) -> None:
    emit = Emitter(op)
    turns = _range_reduce(emit, op.operands[0])
    if op.name == "torch.aten.sin":
        result = _sine(emit, turns)
    else:
        result = _sine(emit, emit.shifted(turns, 0.25))
    if op.name == "torch.aten.tan":
        result = emit.like("aten.div.Tensor", _sine(emit, turns), result)
    _exchange(op, emit, result)


def _range_reduce(emit: Emitter, angle: Value) -> Value:
    """Return how many periods an angle is, without the whole ones, in float64."""
    wide = emit.converted(angle, "f64")
    rests = [_without_whole(emit, emit.scaled(wide, part)) for part in _TURN]
    return functools.reduce(emit.sum, rests)


def _without_whole(emit: Emitter, number: Value) -> Value:
    return emit.difference(number, emit.like("aten.round", number))


def _sine(emit: Emitter, turns: Value) -> Value:
    """Return the sine of periods, in float32: that of an angle up to pi/2, with a sign.

    IREE takes the sine of a negative angle for a cosine, which loses the digits of a small one.
    """
    turns = _without_whole(emit, turns)
    halves = emit.like("aten.round", emit.scaled(turns, 2.0))  # -1, 0 or 1
    rest = emit.converted(emit.difference(turns, emit.scaled(halves, 0.5)), "f32")
    angle = emit.scaled(emit.like("aten.abs", rest), 2 * math.pi)
    sine = emit.product(emit.like("aten.sin", angle), emit.like("aten.sign", rest))
    odd = emit.like("aten.abs", emit.converted(halves, "f32"))
    return emit.difference(sine, emit.product(sine, emit.scaled(odd, 2.0)))


def _gelu(op: Operation) -> None:
    form = op.operands[1].owner
    if StringAttr(form.attributes["value"]).value != "tanh":
        return
    emit = Emitter(op)
    x = emit.converted(op.operands[0], "f32")
    cube = emit.product(emit.product(x, x), x)
    inner = emit.sum(x, emit.scaled(cube, 0.044715))
    share = emit.like("aten.tanh", emit.scaled(inner, math.sqrt(2 / math.pi)))
    half = emit.scaled(x, 0.5)
    _exchange(op, emit, emit.sum(half, emit.product(half, share)))


def _exchange(op: Operation, emit: Emitter, result: Value) -> None:
    narrow = emit.converted(result, tensor_type(op.result.type)[1])
    op.result.replace_all_uses_with(narrow)
    op.erase()


_FUNCTIONS = {
    "torch.aten.cos": _circular,
    "torch.aten.gelu": _gelu,
    "torch.aten.sin": _circular,
    "torch.aten.tan": _circular,
}
