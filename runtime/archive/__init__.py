"""Parameter archives: weights in files and in memory, by name, and their way into a program."""

from .archives import (
    WRITABLE_SUFFIXES,
    Access,
    ParameterSource,
    check_parameters,
    load_parameters,
    open_archive,
    write_archive,
)

__all__ = [
    "WRITABLE_SUFFIXES",
    "Access",
    "ParameterSource",
    "check_parameters",
    "load_parameters",
    "open_archive",
    "write_archive",
]
