"""Values of a procedure while it is traced: scalars, tensors, indexing, arithmetic."""
