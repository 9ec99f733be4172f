"""Parameters of modules: which are external, and their archives."""
