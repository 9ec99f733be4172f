"""Parameters: the public path of `archive.parameter`."""

from .archive.parameter import Parameter, blob_of, parameter_of

__all__ = ["Parameter", "blob_of", "parameter_of"]
