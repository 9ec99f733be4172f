"""Device affinities as attributes of arguments, globals and values."""

from __future__ import annotations

from collections.abc import Mapping

from iree.compiler.ir import ArrayAttr, Attribute, Context, DictAttr, Operation

from ..spec.errors import ExportError
from ..spec.tensor_traits import DeviceAffinity


def affinity_attribute(affinity: DeviceAffinity, context: Context) -> Attribute:
    """Return the attribute that binds a value to a device of the program.

    Example:
        >>> affinity_attribute(DeviceAffinity(1), Context())
        Attribute(#hal.device.promise<@__device_1>)
    """
    queues = "" if affinity.queues is None else f", [{', '.join(map(str, affinity.queues))}]"
    return Attribute.parse(f"#hal.device.promise<@__device_{affinity.ordinal}{queues}>", context)


def attributes_from_argument_device_affinities(
    affinities: Mapping[int, DeviceAffinity] | None, arguments_count: int, context: Context
) -> list[dict[str, Attribute]]:
    """Return the attributes of each argument of a function; nothing if no device is named.

    Args:
        affinities: The device of each flat argument, by its position.
        arguments_count: The number of flat arguments.
        context: The module's MLIR context.

    Raises:
        ExportError: A position that the function does not have, or a value that is no affinity.

    Example:
        >>> attributes_from_argument_device_affinities(None, 2, Context())
        []
    """
    if not affinities:
        return []
    beyond = [position for position in affinities if position not in range(arguments_count)]
    if beyond:
        raise ExportError(
            f"arg_device names the arguments {', '.join(map(str, beyond))}; "
            f"the function has {arguments_count} flat arguments, numbered from 0"
        )
    for position, affinity in affinities.items():
        if not isinstance(affinity, DeviceAffinity):
            raise ExportError(
                f"arg_device[{position}] is {affinity!r}; give a DeviceAffinity, as in "
                f"arg_device={{{position}: aot.DeviceAffinity(1)}}"
            )
    return [
        {"iree.abi.affinity": affinity_attribute(affinities[position], context)}
        if position in affinities
        else {}
        for position in range(arguments_count)
    ]


def set_argument_devices(
    function: Operation, affinities: Mapping[int, DeviceAffinity] | None
) -> None:
    """Bind arguments of a function to devices.

    Args:
        function: The function.
        affinities: The device of each flat argument, by its position.

    Raises:
        ExportError: A position that the function does not have.
    """
    arguments = function.regions[0].blocks[0].arguments
    entries = attributes_from_argument_device_affinities(
        affinities, len(arguments), function.context
    )
    if entries:
        with function.context:
            stated = ArrayAttr.get([DictAttr.get(entry) for entry in entries])
            function.attributes["arg_attrs"] = stated
