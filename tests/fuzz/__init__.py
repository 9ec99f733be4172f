"""Hostile files: mutations of every format, each read in a child process under limits."""
