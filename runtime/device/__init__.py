"""Devices, and the memory of tensors on them."""
