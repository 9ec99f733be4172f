"""Parameter sets: lookups, and providers for IREE."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pelton.runtime.archive import load_parameters, write_archive
from pelton.runtime.archive.parameter import Parameter, parameter_of
from pelton.runtime.archive.parameter_set import ParameterSet
from tests.runtime.archives import SPLAT, WEIGHT


def test_set_says_which_name_it_lacks() -> None:
    with pytest.raises(KeyError, match="no parameter 'bias' in memory"):
        ParameterSet([])["bias"]


def test_size_of_a_set_counts_tied_tensors_once() -> None:
    given = load_parameters({"weight": WEIGHT, "tied": WEIGHT})["model"]
    assert given.nbytes == WEIGHT.nbytes


PROGRAM = """
util.global private @w = #flow.parameter.named<"model"::"weight"> : tensor<64xf32>
util.global private @s = #flow.parameter.named<"model"::"splat"> : tensor<64xf32>
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %w = util.global.load @w : tensor<64xf32>
  %s = util.global.load @s : tensor<64xf32>
  %0 = arith.addf %x, %w : tensor<64xf32>
  %1 = arith.addf %0, %s : tensor<64xf32>
  return %1 : tensor<64xf32>
}
"""


@pytest.fixture(scope="module")
def program() -> bytes:
    from iree.compiler import compile_str

    return compile_str(
        PROGRAM, target_backends=["llvm-cpu"], extra_args=["--iree-llvmcpu-target-cpu=generic"]
    )


def run_with(program: bytes, given: ParameterSet) -> Callable[[], np.ndarray]:
    import iree.runtime as iree

    config = iree.Config("local-sync")
    instance = config.vm_instance
    modules = [
        iree.create_hal_module(instance, config.device),
        iree.create_io_parameters_module(instance, given.provider("model")),
        iree.VmModule.copy_buffer(instance, program),
    ]
    function = iree.FunctionInvoker(
        iree.VmContext(instance, modules), config.device, modules[-1].lookup_function("main")
    )
    return lambda: function(np.zeros(64, np.float32)).to_host()


def test_program_runs_with_a_file_that_nothing_else_keeps_open(
    program: bytes, tmp_path: Path
) -> None:
    weight = np.arange(64, dtype=np.float32)
    write_archive(tmp_path / "a.irpa", [parameter_of("weight", weight), SPLAT])
    main = run_with(program, load_parameters(tmp_path / "a.irpa")["model"])
    gc.collect()
    np.testing.assert_array_equal(main(), weight + 10)


def test_program_uses_live_tensors_in_place(program: bytes) -> None:
    weight = torch.arange(64, dtype=torch.float32)
    assert weight.data_ptr() % 64 == 0
    main = run_with(program, ParameterSet([parameter_of("weight", weight), SPLAT]))
    weight += 1
    np.testing.assert_array_equal(main(), weight.numpy() + 10)


def test_program_uses_strided_tensors_by_value(program: bytes) -> None:
    weight = torch.arange(128, dtype=torch.float32)[::2]
    main = run_with(program, ParameterSet([parameter_of("weight", weight), SPLAT]))
    np.testing.assert_array_equal(main(), weight.numpy() + 10)


def test_provider_holds_only_the_names_asked_for() -> None:
    given = load_parameters({"a": WEIGHT, "b": WEIGHT})["model"]
    assert [name for name, _ in given.index(["b"]).items()] == ["b"]


class Counted(Parameter):
    """A parameter that counts how often its contents are copied."""

    copies = 0

    def chunks(self) -> Iterator[NDArray[np.uint8]]:
        Counted.copies += 1
        return super().chunks()


def counted(data: NDArray[np.float32]) -> ParameterSet:
    Counted.copies = 0
    return ParameterSet(
        Counted(name, "float32", data.shape, data.nbytes, data) for name in ("weight", "tied")
    )


@pytest.mark.parametrize(
    ("start", "step", "in_place", "copies"),
    [(0, 1, True, 0), (1, 1, True, 1), (0, 2, True, 1), (1, 1, False, 0)],
    ids=["aligned", "unaligned", "strided", "device memory"],
)
def test_providers_share_one_copy_of_what_cannot_be_used_in_place(
    start: int, step: int, in_place: bool, copies: int
) -> None:
    memory = torch.arange(200, dtype=torch.float32).numpy()
    given = counted(memory[start:][::step][:64])
    providers = [given.provider(scope, in_place=in_place) for scope in ("one", "two")]
    assert Counted.copies == copies
    del providers
