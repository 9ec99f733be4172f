"""Devices and the memory that tensors lie in."""
