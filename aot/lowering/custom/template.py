"""Templates of text bodies: fields, their values, and errors with the line of the body."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...ir.torch_types import TensorType
from .operator import CustomOp


class _Template(string.Template):
    braceidpattern = r"(?a:[_a-z]\w*(?:\.[a-z]\w*)?)"


@dataclass(frozen=True)
class TensorForm:
    """The fields of one tensor of a text body.

    Attributes:
        name: The argument's name, or that of a result.
        element: The element type in MLIR.
        dims: What its sizes are called; for results without stated shapes, placeholders.
        map: Its indexing map.
    """

    name: str
    element: str
    dims: tuple[str, ...]
    map: str

    @property
    def type(self) -> str:
        """Its type: all sizes are dynamic."""
        return TensorType((None,) * len(self.dims), self.element).builtin()

    def fields(self) -> dict[str, str]:
        """Return the text of each field.

        Example:
            >>> form = TensorForm("x", "f32", ("m", "n"), "affine_map<(d0, d1) -> (d0, d1)>")
            >>> form.fields()["x"], form.fields()["x.sizes"]
            ('tensor<?x?xf32>', '%size.m, %size.n')
        """
        sizes = ", ".join(map(size, self.dims))
        parts = {"element": self.element, "rank": str(len(self.dims)), "sizes": sizes}
        named = {f"{self.name}.{part}": text for part, text in {**parts, "map": self.map}.items()}
        return {self.name: self.type, **named}


def size(name: str) -> str:
    """Return the value name of a size in a text body."""
    return f"%size.{name}"


def names_in(text: str) -> set[str]:
    """Return the fields that a template names.

    Example:
        >>> sorted(names_in("%0 = $x ${y.element} $$z"))
        ['x', 'y.element']
    """
    return {m["named"] or m["braced"] for m in _Template.pattern.finditer(text)} - {None}


def fill_in(op: CustomOp, text: str, fields: Mapping[str, str]) -> str:
    """Return a template with its fields filled in.

    Args:
        op: The operator, for messages.
        text: The template.
        fields: The text of each field.

    Raises:
        ExportError: It names a field that there is not, or has a lone `$`; gives the line.
    """
    for found in _Template.pattern.finditer(text):
        name = found["named"] or found["braced"]
        if (name is None and found["invalid"] is None) or name in fields:
            continue
        line = text.count("\n", 0, found.start()) + 1
        known = ", ".join(f"${key}" if "." not in key else f"${{{key}}}" for key in fields)
        reason = (
            f"has no field ${name}; there are: {known}. A number is a field "
            "only where it is a constant"
            if name is not None
            else "has a '$' that begins no field; write $$ for the character"
        )
        raise op.error(f"line {line} of its body {reason}\n{quoted(text, line)}")
    return _Template(text).substitute(fields)


def quoted(text: str, line: int) -> str:
    """Return a line of a text for a message."""
    lines = text.splitlines()
    return f"  {line} | {lines[line - 1].strip()}" if 0 < line <= len(lines) else ""


def literal(value: Any) -> str:
    """Return a constant as MLIR writes it.

    Example:
        >>> literal(True), literal([1, 2]), literal("axis"), literal(0.5)
        ('true', '[1, 2]', 'axis', '5.0000000000000000e-01')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.16e}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(map(literal, value))}]"
    return "none" if value is None else str(value)
