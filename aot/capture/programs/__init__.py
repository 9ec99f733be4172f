"""Several captured programs of one model, and their files."""
