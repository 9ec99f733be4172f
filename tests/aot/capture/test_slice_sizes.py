"""Sizes of slices: that of eager for each size of the dimension, and one form for equal ones."""

from __future__ import annotations

import itertools

import torch

from pelton.aot.capture.dynamic_shapes import size_of
from pelton.aot.capture.slice_sizes import slice_size
from pelton.aot.capture.trace import capture
from pelton.runtime.call.sizes import evaluate

AUTO = {"x": {0: torch.export.Dim.AUTO}}
PLACES = (None, 0, 1, 3, -1, -3)


def test_a_slice_has_the_size_that_eager_gives_it() -> None:
    for start, end, step in itertools.product(PLACES, PLACES, (1, 2)):
        for size in range(6):
            wanted = torch.zeros(size)[start:end:step].shape[0]
            assert slice_size(size, start or 0, end, step) == wanted, (start, end, step, size)


def test_a_traced_slice_has_that_size() -> None:
    cuts = [slice(*cut) for cut in itertools.product(PLACES, PLACES, (1, 2))]
    program = capture(lambda x: [x[cut] for cut in cuts], (torch.ones(4),), {}, AUTO).program
    (symbol,) = program.range_constraints
    for cut, node in zip(cuts, program.graph.output_node().args[0], strict=True):
        traced = size_of(node.meta["val"].shape[0], {str(symbol): "n"})
        for size in range(6):
            assert evaluate(traced, {"n": size}) == torch.zeros(size)[cut].shape[0], (cut, size)


def test_slices_of_equal_sizes_are_no_constraint() -> None:
    named = {"x": {0: torch.export.Dim("n")}}
    for shapes in (AUTO, named):
        found = capture(lambda x: x[1:] - x[:-1], (torch.ones(4),), {}, shapes).program
        assert all(bounds.lower == 0 for bounds in found.range_constraints.values())
