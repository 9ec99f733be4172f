"""Programs with indices, called with hostile ones; run as a child process, which must survive.

The tensor that is indexed fills one page of memory, between two pages that must not be touched.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pelton import aot, runtime

SIZE = 32
"""Of a matrix of float32 that fills a page."""

VECTOR, PAIRS = torch.tensor([0, 2]), torch.tensor([[0, 1], [1, 0]])
VALUES = torch.arange(2.0 * SIZE).reshape(2, SIZE)

PROGRAMS: dict[str, tuple[Callable[[Tensor, Tensor], Any], Tensor]] = {
    "index": (lambda x, i: x[i], VECTOR),
    "index in two dimensions": (lambda x, i: x[i, i], VECTOR),
    "index of columns": (lambda x, i: x[:, i], VECTOR),
    "index_put": (lambda x, i: x.index_put((i,), VALUES), VECTOR),
    "index_put added": (lambda x, i: x.index_put((i, i), VALUES[0, :2], accumulate=True), VECTOR),
    "index_put in zeros": (lambda x, i: torch.zeros(5, SIZE).index_put((i,), x[:2]), VECTOR),
    "index_select": (lambda x, i: x.index_select(1, i), VECTOR),
    "gather": (lambda x, i: x.gather(0, i), PAIRS),
    "scatter": (lambda x, i: x.scatter(0, i, VALUES), PAIRS),
    "scatter of a number": (lambda x, i: x.scatter(1, i, 1.0), PAIRS),
    "scatter_add": (lambda x, i: x.scatter_add(0, i, VALUES), PAIRS),
    "scatter_reduce": (lambda x, i: x.scatter_reduce(0, i, VALUES, "amax"), PAIRS),
    "index_fill": (lambda x, i: x.index_fill(0, i, 1.0), VECTOR),
    "embedding": (lambda x, i: F.embedding(i, x), VECTOR),
    "embedding_bag": (lambda x, i: F.embedding_bag(i, x), PAIRS),
    "take": (lambda x, i: x.take(i), VECTOR),
    "one_hot": (lambda x, i: F.one_hot(i, 5) + x[0, 0], VECTOR),
    "bincount": (lambda x, i: torch.bincount(i, minlength=6), VECTOR),
    "select": (lambda x, i: x[i[0].item()], VECTOR),
    "of 32 bits": (lambda x, i: x[i.int()], VECTOR),
    "in a branch": (
        lambda x, i: torch.cond(
            i.sum() > -(10**9), lambda x, i: x.index_select(0, i), lambda x, i: x[:2] * 1, (x, i)
        ),
        VECTOR,
    ),
    "three operators": (lambda x, i: (x[i], x.index_select(0, i), F.embedding(i, x)), VECTOR),
}  # fmt: skip

SHIFTS = (0, -1, 1 - SIZE, -SIZE, SIZE - 3, SIZE - 2, SIZE, 2**31, -(2**31), 2**62)
"""What is added to all indices: both ends of the range, one beyond, and far away."""


class _Nothing(nn.Module):
    pass


def compiled(*, dynamic: bool) -> runtime.Executable:
    """Return an executable with an entry point for each program."""
    rows = aot.NamedDimension("rows", 3, SIZE, 64)
    x = aot.InputInfo((rows, SIZE), torch.float32) if dynamic else torch.zeros(SIZE, SIZE)
    builder = aot.FxProgramsBuilder(_Nothing())
    for number, (program, index) in enumerate(PROGRAMS.values()):
        builder.export_program(
            lambda module, x, i, program=program: program(x, i),
            args=[x, index],
            strict=False,
            name=f"p{number}",
        )
    return runtime.load(bytes(aot.export(builder).compile().map_memory()))


def guarded() -> np.ndarray[Any, Any]:
    """Return a matrix that fills a page; reading beside it ends the process."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, 3 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for place in (start, start + 2 * page):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(place), page, 0) == 0
    x = np.frombuffer(memory, np.float32, SIZE * SIZE, page).reshape(SIZE, SIZE)
    x[:] = np.arange(SIZE * SIZE).reshape(SIZE, SIZE)
    return x


def _eager(program: Callable[[Tensor, Tensor], Any], x: Tensor, i: Tensor) -> Any:
    try:
        return program(x, i)
    except (IndexError, RuntimeError):
        return None


def differences(*, dynamic: bool) -> list[str]:
    """Call each program with each shift of its indices; return what eager does otherwise."""
    executable, x = compiled(dynamic=dynamic), guarded()
    found = []
    for number, (name, (program, index)) in enumerate(PROGRAMS.items()):
        for shift in SHIFTS:
            if name in ("bincount", "of 32 bits") and shift >= 2**31:
                continue  # as many bins; no index of 32 bits
            i = index + shift
            want = _eager(program, torch.from_numpy(x.copy()), i)
            try:
                got = getattr(executable, f"p{number}")(x, i.numpy())
            except aot.IndexOutOfRangeError as error:
                got = None
                if "hostile_indices.py:" not in str(error):
                    found.append(f"{name}: no line in {error}")
            leaves = [each if isinstance(each, tuple) else (each,) for each in (got, want)]
            same = (got is None) == (want is None) and (
                got is None
                or all(map(np.array_equal, leaves[0], (leaf.numpy() for leaf in leaves[1])))
            )
            if not same:
                found.append(f"{name}, indices moved by {shift}: {got} for {want}")
    return found


if __name__ == "__main__":
    print(json.dumps(differences(dynamic=sys.argv[1] == "dynamic")))
