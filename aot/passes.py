"""Public path of the fx passes of jittables; they live in `procedural.fx_passes`."""

from .procedural.fx_passes import functorch_functionalize

__all__ = ["functorch_functionalize"]
