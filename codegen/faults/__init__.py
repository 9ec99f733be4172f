"""Faults of IREE that are answered by passes between the phases of its compiler."""
