"""Phase passes: which run on a program, in the order of IREE's phases."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from iree.compiler.ir import Operation

from pelton.codegen import passes
from pelton.codegen.passes import STREAM_TENSORS, PhasePasses, output_channel_tile

PHASES = (
    "input", "abi", "preprocessing", "global-optimization", "dispatch-creation", "flow",
    STREAM_TENSORS, "stream", "executable-sources", "executable-configurations",
    "executable-targets", "hal", "vm",
)  # fmt: skip
"""The phases of `iree-compile --compile-to`, in order, with the one that we stop within."""


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("tile", [0, 16])
def test_passes_are_in_the_order_of_the_phases(dynamic: bool, tile: int) -> None:
    reached = [PHASES.index(phase) for phase, _ in PhasePasses(dynamic, tile).pipeline()]
    assert reached == sorted(reached)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (
            PhasePasses(),
            [
                "expand_float64_functions",
                "split_constant_results",
                "round_constants",
                "separate_destinations",
                "materialize_strided_sources",
                "insert_const_eval_barriers",
                "copy_shared_storage",
                "materialize_invariant_reduction_inputs",
            ],
        ),
        (
            PhasePasses(dynamic_sizes=True),
            [
                "expand_float64_functions",
                "split_constant_results",
                "round_constants",
                "separate_destinations",
                "materialize_strided_sources",
                "decompose_dynamic_pads",
                "insert_const_eval_barriers",
                "mark_static_matmuls",
                "copy_shared_storage",
                "materialize_invariant_reduction_inputs",
                "fix_workload_ordinals",
            ],
        ),
    ],
    ids=["static", "dynamic"],
)
def test_passes_of_a_program(given: PhasePasses, names: Sequence[str]) -> None:
    assert [run for _, run in given.pipeline()] == [getattr(passes, name) for name in names]


def test_sizes_of_zero_are_allowed_before_anything_relies_on_sizes() -> None:
    phase, run = next(PhasePasses(empty_sizes=True).pipeline())
    assert (phase, run) == ("input", passes.assume_no_elements)


def test_tile_is_given_to_the_pass_that_overrides_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []

    def override(module_op: Operation, channels: int) -> None:
        given.append(channels)

    monkeypatch.setattr(passes, "override_conv_lowering_config", override)
    *_, (phase, run) = PhasePasses(channel_tile=48).pipeline()
    run(None)
    assert (phase, given) == ("executable-configurations", [48])


def test_cpus_without_wide_registers_get_smaller_tiles() -> None:
    assert output_channel_tile({"avx2", "fma"}) < output_channel_tile({"avx2", "avx512f"})
    assert output_channel_tile(()) == output_channel_tile({"neon"}) == 16
