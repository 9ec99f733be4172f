"""Decompositions of operators over windows: pooling, convolution, padding, interpolation, FFT."""
