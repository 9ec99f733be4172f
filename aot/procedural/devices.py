"""The devices of a function's arguments, as attributes of the function."""

from __future__ import annotations

from collections.abc import Mapping

from iree.compiler.ir import Attribute, Context

from ..builder import affinity_attribute
from ..errors import ExportError
from ..tensor_traits import DeviceAffinity


def attributes_from_argument_device_affinities(
    affinities: Mapping[int, DeviceAffinity] | None, arguments_count: int, context: Context
) -> list[dict[str, Attribute]]:
    """Return the attributes of each argument of a function.

    Args:
        affinities: The device of each flat argument, by its position.
        arguments_count: The number of flat arguments.
        context: The module's MLIR context.

    Raises:
        ExportError: A position that the function does not have.

    Example:
        >>> attributes_from_argument_device_affinities(None, 2, Context())
        []
    """
    if not affinities:
        return []
    beyond = [position for position in affinities if not 0 <= position < arguments_count]
    if beyond:
        raise ExportError(
            f"arg_device names the arguments {', '.join(map(str, beyond))}; "
            f"the function has {arguments_count} flat arguments, numbered from 0"
        )
    return [
        {"iree.abi.affinity": affinity_attribute(affinities[position], context)}
        if position in affinities
        else {}
        for position in range(arguments_count)
    ]
