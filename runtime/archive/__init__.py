"""Parameter archives: named weights in files and in memory, and their use in programs."""

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
