"""Private names of torch, IREE and onnxscript: nothing else of the package imports one.

Each file holds the names of one subject, under public names. A contract test in
`tests/aot/compat/` states the behaviour of each name that the export relies on.
"""
