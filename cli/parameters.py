"""`--parameters`: the archives of the weights that a program takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pelton.runtime.errors import ParameterError

from .options import OptionGroup


def add_parameters_option(parser: OptionGroup) -> None:
    """Add `--parameters`, which may be repeated."""
    parser.add_argument(
        "--parameters",
        action="append",
        default=[],
        metavar="[SCOPE=]FILE",
        help="an archive of weights: .irpa, .safetensors, .gguf",
    )


def parameters_of(given: Sequence[str]) -> Any:
    """Return what `load` and `compile` take for the archives that were named.

    Args:
        given: Files, all with their scopes (`model=m.irpa`) or all without.

    Raises:
        ParameterError: Some have a scope and some have none.

    Example:
        >>> parameters_of(["m.irpa"]), parameters_of(["a=m.irpa", "b=n.irpa"])
        (['m.irpa'], {'a': ['m.irpa'], 'b': ['n.irpa']})
    """
    scoped: dict[str, list[str]] = {}
    plain = []
    for text in given:
        scope, equals, file = text.partition("=")
        if equals and not Path(text).exists():
            scoped.setdefault(scope, []).append(file)
        else:
            plain.append(text)
    if scoped and plain:
        raise ParameterError(
            f"--parameters {plain[0]} has no scope and others have; give all one: SCOPE=FILE"
        )
    return scoped or plain or None
