"""How many windows there are, and the padding that they need, beside torch's pooling."""

import itertools

import pytest
import torch
import torch.nn.functional as F

from pelton.aot.decompositions.windows.explicit_padding import (
    Window,
    each,
    explicit_padding,
    windows_of,
)

SIZES = itertools.product((1, 2, 5, 8), (1, 2, 3), (1, 2, 4), (0, 1), (1, 2))
GEOMETRIES = [
    (size, kernel, stride, padding, dilation)
    for size, kernel, stride, padding, dilation in SIZES
    if padding <= kernel // 2 and size + 2 * padding > dilation * (kernel - 1)
]


@pytest.mark.parametrize("ceil_mode", [True, False])
def test_windows_are_counted_as_torch_does(ceil_mode):
    for size, kernel, stride, padding, dilation in GEOMETRIES:
        window = Window(size, kernel, stride, padding, dilation, ceil_mode)
        pooled = F.max_pool1d(torch.zeros(1, 1, size), kernel, stride, padding, dilation, ceil_mode)
        assert window.count == pooled.shape[-1], window


@pytest.mark.parametrize("ceil_mode", [True, False])
def test_padding_ends_at_the_last_window(ceil_mode):
    for geometry in GEOMETRIES:
        window = Window(*geometry, ceil_mode)
        length = geometry[0] + window.padding + window.after
        assert length == (window.count - 1) * window.stride + window.reach, window


def test_one_value_stands_for_all_dimensions():
    assert each(2, 3) == each([2], 3) == [2, 2, 2]
    assert each((1, 2), 2) == [1, 2]
    assert windows_of([5, 6], [3], [], [1], ceil_mode=True) == [
        Window(5, 3, 3, 1, 1, True), Window(6, 3, 3, 1, 1, True),
    ]  # fmt: skip


def test_only_dimensions_with_one_window_are_padded_to_its_end():
    windows = windows_of([4, 9], [3], [2], [0, 1])
    assert explicit_padding(windows) == [1, 1, 0, -1]
    assert explicit_padding(windows, to_last=True) == [1, 1, 0, -1]
    windows = windows_of([4, 8], [3], [2], [0, 1])
    assert explicit_padding(windows) == [1, 1, 0, -1]
    assert explicit_padding(windows, to_last=True) == [1, 0, 0, -1]


def test_windows_that_the_compiler_takes_need_none():
    assert explicit_padding(windows_of([3, 9], [3], [2])) is None
    assert explicit_padding(windows_of([9], [3], [2], [1])) is None
    assert explicit_padding(windows_of([9], [3], [2], [1], ceil_mode=True)) == [1, 1]
