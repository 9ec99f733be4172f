"""The `CompiledModule` class: its declaration, its instance, and the trace of its procedures."""
