"""Compiled artifacts as files: `.vmfb`, `.trtm` and the ZIP formats below them."""
