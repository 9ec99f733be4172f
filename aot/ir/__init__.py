"""The MLIR module: read, write, build, types of the torch dialect, digests, aliasing of inputs."""
