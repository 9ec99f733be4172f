"""Faults of IREE that are answered in the module before the compiler sees it."""
