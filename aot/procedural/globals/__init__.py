"""Globals of a `CompiledModule`: types, declarations, loads and stores."""
