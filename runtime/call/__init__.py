"""The signature of a call: element types, sizes, pytrees, and the check of arguments."""
