"""Inputs of every layout and library go in right; results belong to the caller."""

import gc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from pelton import runtime

from .children import run_child
from .conftest import Compiled
from .foreign import DLPackArray, NamespaceArray, aligned, unaligned

ROWS = torch.arange(12.0).reshape(3, 4)

TORCH_LAYOUTS = {
    "contiguous": ROWS,
    "strided": torch.arange(24.0).reshape(3, 8)[:, ::2],
    "expanded": torch.arange(4.0).expand(3, 4),
    "expanded to nothing": torch.arange(4.0).expand(0, 4),
    "transposed": torch.arange(12.0).reshape(4, 3).t(),
    "offset": torch.arange(13.0)[1:].view(3, 4),
    "flipped": ROWS.flip(0),
    "without elements": torch.zeros(5, 4)[2:2],
    "requiring gradients": ROWS.clone().requires_grad_(),
    "within a graph": ROWS.clone().requires_grad_() * 2,
    "parameter": torch.nn.Parameter(ROWS.clone()),
    "one row of many columns": torch.arange(40.0).view(10, 4)[:1],
    "negated lazily": torch.view_as_complex(torch.ones(3, 4, 2)).conj().imag,
}


@pytest.mark.parametrize("layout", TORCH_LAYOUTS)
def test_torch_tensor_of_any_layout_gives_what_torch_gives(compiled: Compiled, layout: str) -> None:
    tensor = TORCH_LAYOUTS[layout]
    result = runtime.load(compiled("add_one_to_rows"))(tensor)
    assert torch.equal(result, tensor.detach() + 1)
    assert not result.requires_grad


def read_only(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    array.flags.writeable = False
    return array


NUMBERS = np.arange(12, dtype=np.float32).reshape(3, 4)

NUMPY_LAYOUTS = {
    "aligned": aligned(NUMBERS),
    "unaligned": unaligned(NUMBERS),
    "strided": np.arange(24, dtype=np.float32).reshape(3, 8)[:, ::2],
    "broadcast": np.broadcast_to(np.arange(4, dtype=np.float32), (3, 4)),
    "Fortran order": np.asfortranarray(NUMBERS),
    "reversed": NUMBERS[::-1, ::-1],
    "without elements": np.zeros((0, 4), np.float32),
    "read only": read_only(aligned(NUMBERS)),
    "read only and unaligned": read_only(unaligned(NUMBERS)),
    "other byte order": NUMBERS.astype(">f4"),
    "recarray": NUMBERS.view(np.recarray),
}


@pytest.mark.parametrize("layout", NUMPY_LAYOUTS)
def test_numpy_array_of_any_layout_gives_what_numpy_gives(compiled: Compiled, layout: str) -> None:
    array = NUMPY_LAYOUTS[layout]
    result = runtime.load(compiled("add_one_to_rows"))(array)
    assert type(result) is np.ndarray
    assert np.array_equal(result, np.asarray(array) + 1)


@pytest.mark.parametrize("memory", [NUMBERS, aligned(NUMBERS), ROWS, ROWS[1:], NUMBERS[::-1]])
def test_array_of_an_unknown_library_crosses_by_dlpack(compiled: Compiled, memory: Any) -> None:
    result = runtime.load(compiled("add_one_to_rows"))(DLPackArray(memory))
    assert type(result) is np.ndarray
    assert result.tolist() == (memory + 1).tolist()


def test_result_is_of_the_library_of_the_first_argument(compiled: Compiled) -> None:
    exe = runtime.load(compiled("add_rows"))
    assert isinstance(exe(NamespaceArray(NUMBERS), ROWS), NamespaceArray)
    assert isinstance(exe(ROWS, NamespaceArray(NUMBERS)), torch.Tensor)


@pytest.mark.parametrize(
    "number",
    [torch.tensor(2.0), np.array(2, np.float32), np.float32(2)],
    ids=lambda x: str(type(x)),
)
def test_tensor_without_dimensions_crosses(compiled: Compiled, number: Any) -> None:
    result = runtime.load(compiled("add_one_to_number"))(number)
    assert (tuple(result.shape), float(result)) == ((), 3.0)


@pytest.mark.parametrize("strides", [(3, 3, 1), (3, 1, 1), (3, 999, 1), (3, 0, 1), (0, 0, 0)])
def test_dimension_of_one_element_may_have_any_stride(
    compiled: Compiled, strides: tuple[int, ...]
) -> None:
    tensor = torch.arange(5000.0).as_strided((4, 1, 3), strides)
    assert torch.equal(runtime.load(compiled("add_one_to_thin"))(tensor), tensor + 1)


def test_conjugated_view_gives_its_values(compiled: Compiled) -> None:
    tensor = torch.tensor([1 + 2j, 2 - 1j, 0j, 1j], dtype=torch.complex64).conj()
    assert torch.equal(runtime.load(compiled("add_one_to_complex"))(tensor), tensor + 1)


# Inputs


@pytest.mark.parametrize("program", ["add_one", "counter"])
@pytest.mark.parametrize("make", [torch.ones, lambda n: aligned(np.ones(n, np.float32))])
def test_inputs_are_never_written_to(compiled: Compiled, program: str, make: Any) -> None:
    exe, x = runtime.load(compiled(program)), make(4)
    for _ in range(3):
        exe(x)
    assert x.tolist() == [1, 1, 1, 1]


def test_same_tensor_may_be_given_twice(compiled: Compiled) -> None:
    assert torch.equal(runtime.load(compiled("add_rows"))(ROWS, ROWS), ROWS * 2)


def test_arguments_that_nobody_keeps_are_read_before_they_go(compiled: Compiled) -> None:
    exe = runtime.load(compiled("itself_and_views"))
    results = [exe(aligned(np.full((3, 4), i, np.float32))) for i in range(50)]
    gc.collect()
    for i, parts in enumerate(results):
        assert all((part == i).all() for part in parts)


# Results


@pytest.mark.parametrize(
    "x", [ROWS, aligned(NUMBERS), unaligned(NUMBERS), NUMPY_LAYOUTS["read only"]]
)
def test_input_that_is_a_result_or_seen_through_one_is_not_shared(
    compiled: Compiled, x: Any
) -> None:
    before = x.tolist()
    same, reshaped, rest = runtime.load(compiled("itself_and_views"))(x)
    assert same.tolist() == before
    assert reshaped.reshape(3, 4).tolist() == before
    assert rest.tolist() == before[1:]
    for result in (same, reshaped, rest):
        result[...] = -1
    assert x.tolist() == before


@pytest.mark.parametrize("x", [torch.ones(4), np.ones(4, np.float32)])
def test_results_stay_when_the_next_call_writes_its_own(compiled: Compiled, x: Any) -> None:
    exe = runtime.load(compiled("add_one"))
    results = [exe(x * i) for i in range(20)]
    assert [result.tolist() for result in results] == [[i + 1.0] * 4 for i in range(20)]


@pytest.mark.parametrize("program", ["weighted", "weighted_within"])
@pytest.mark.parametrize("x", [torch.ones(4), np.ones(4, np.float32)])
def test_weight_that_is_a_result_is_not_shared(compiled: Compiled, program: str, x: Any) -> None:
    path = compiled(program)
    parameters = path.with_suffix(".irpa") if path.with_suffix(".irpa").exists() else None
    exe = runtime.load(path, parameters=parameters)
    _, weight = exe(x)
    weight[...] = 9
    result, weight = exe(x)
    assert result.tolist() == [1, 2, 3, 4]
    assert weight.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("x", [torch.ones(4), np.ones(4, np.float32)])
def test_results_outlive_the_executable_and_its_file(
    compiled: Compiled, tmp_path: Path, x: Any
) -> None:
    path = tmp_path / "m.vmfb"
    path.write_bytes(compiled("add_one").read_bytes())
    result = runtime.load(path)(x)
    path.unlink()
    gc.collect()
    assert result.tolist() == [2, 2, 2, 2]
    result[0] = 5
    assert result.tolist() == [5, 2, 2, 2]


@pytest.mark.parametrize("library", ["torch", "numpy"])
def test_results_may_live_until_the_interpreter_ends(compiled: Compiled, library: str) -> None:
    code = """
        import atexit, sys
        import numpy as np
        from pelton import runtime

        if sys.argv[2] == "torch":
            import torch
            x = torch.ones(4)
        else:
            x = np.ones(4, np.float32)
        exe = runtime.load(sys.argv[1])
        results = [exe(x) for _ in range(10)]
        cycle = [results, exe]
        cycle.append(cycle)
        atexit.register(lambda: print(sum(float(r.sum()) for r in results)))
    """
    assert run_child(code, compiled("add_one"), library) == "80.0\n"


def test_results_are_torch_tensors_where_no_argument_tells(compiled: Compiled) -> None:
    total = runtime.load(compiled("counter")).state["total"]
    assert isinstance(total, torch.Tensor)


def test_results_are_numpy_arrays_where_torch_is_not_imported(compiled: Compiled) -> None:
    code = """
        import sys
        from pelton import runtime

        state = runtime.load(sys.argv[1]).state
        assert "torch" not in sys.modules
        print(type(state["total"]).__name__, state["odd"].dtype, state["calls"].dtype)
    """
    assert run_child(code, compiled("counter")) == "ndarray bool int64\n"
