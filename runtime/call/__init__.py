"""Signatures of calls: element types, sizes, pytrees, and the check of arguments."""
