"""Custom operators in the module: shapes, text templates, bodies, expansion."""
