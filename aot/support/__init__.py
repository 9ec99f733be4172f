"""Names for who builds on the procedural layer."""
