"""Size assumptions: the lower bound that IREE states for each size that varies.

IREE (3.13) binds the sizes of tensors to the symbols of the torch dialect, and assumes that each is
at least 1, whatever `torch.symbolic_int` says. For `x[:, 1:3]` it then takes `min(3, size) - 1` for
the size of the result, which is -1 where the size is 0.
"""

from __future__ import annotations

from iree.compiler.ir import Attribute, Operation

from ..linalg import operations_in

_ASSUMPTIONS = "assumptions"


def assume_no_elements(module_op: Operation) -> None:
    """Let each size that IREE assumes to be at least 1 be 0 as well.

    Args:
        module_op: A module at the end of the phase `input`; changed in place.
    """
    for assume in operations_in(module_op, "util.assume.int"):
        stated = str(assume.attributes[_ASSUMPTIONS])
        lowered = stated.replace("<umin = 1,", "<umin = 0,")
        assume.attributes[_ASSUMPTIONS] = Attribute.parse(lowered, assume.context)
