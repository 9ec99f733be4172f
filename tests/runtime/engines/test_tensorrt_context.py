"""Engine functions: checks against the manifest, profiles and aliases, with a stub of an engine."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pelton.runtime.artifacts.entry_points import Bounds, EngineProfile, EntryPoint
from pelton.runtime.device.cuda import ALIGNMENT
from pelton.runtime.engines.engine_host import EngineLog
from pelton.runtime.engines.tensorrt_context import EngineFunction, _aligned
from pelton.runtime.errors import ArtifactError, PeltonError, SignatureError
from tests.runtime.manifests import entry_point, port

LIBRARY = SimpleNamespace(TensorLocation=SimpleNamespace(HOST="host", DEVICE="device"))


class Engine:
    """The description of an engine, by default as the manifest has it."""

    def __init__(self, function: EntryPoint, **changes: Any) -> None:
        ports = (*function.inputs, *function.outputs)
        self.types = {each.name: each.dtype.tensorrt for each in ports} | changes.pop("types", {})
        self.num_optimization_profiles = max(1, len(function.profiles))
        self.host: set[str] = set()
        self.aliases: dict[str, str] = {}
        self.__dict__.update(changes)

    @property
    def num_io_tensors(self) -> int:
        return len(self.types)

    def get_tensor_name(self, index: int) -> str:
        return list(self.types)[index]

    def get_tensor_dtype(self, name: str) -> Any:
        return SimpleNamespace(name=self.types[name])

    def get_tensor_location(self, name: str) -> str:
        return "host" if name in self.host else "device"

    def get_aliased_input_tensor(self, name: str) -> str | None:
        return self.aliases.get(name)


def engine_function(function: EntryPoint | None = None, **changes: Any) -> EngineFunction:
    function = function or entry_point()
    host: Any = SimpleNamespace(path=Path("m.trtm"), log=EngineLog())
    return EngineFunction(host, LIBRARY, Engine(function, **changes), function)


def test_ports_of_a_function() -> None:
    function = engine_function(host={"k"})
    assert [each.name for each in function.user_inputs] == ["x", "k"]
    assert [each.name for each in function.other_inputs] == ["state.total"]
    assert (function.stateful, function.host, function.in_place) == (True, {"k"}, set())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"types": {"y": "FLOAT"}},
            "has the inputs and outputs k, new_state.total, result, state.total, x, y, the "
            "manifest says k, new_state.total, result, state.total, x",
        ),
        ({"types": {"x": "HALF"}}, "has 'x' of type HALF, expected float32"),
        ({"num_optimization_profiles": 0}, "has 0 profiles, the manifest says 1"),
        ({"aliases": {"result": "x"}}, "writes 'result' into the memory of 'x'"),
        ({"aliases": {"new_state.total": "x"}}, "writes 'new_state.total' into the memory of 'x'"),
        (
            {"aliases": {"result": "state.total"}},
            "writes 'result' into the memory of 'state.total'",
        ),
    ],
)
def test_engine_that_does_not_match_the_manifest_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ArtifactError) as caught:
        engine_function(**changes)
    assert str(caught.value) == f"m.trtm: the engine of main() {message}"


def test_state_may_be_updated_in_place() -> None:
    function = engine_function(aliases={"new_state.total": "state.total"})
    assert function.in_place == {"new_state.total"}


def test_state_of_another_name_is_not_updated_in_place() -> None:
    other = port("state.count", (4,), "state", origin="count")
    function = entry_point(inputs=(*entry_point().inputs, other))
    with pytest.raises(ArtifactError, match=r"'new_state.total' into the memory of 'state.count'"):
        engine_function(function, aliases={"new_state.total": "state.count"})


def test_engines_of_versions_without_aliases() -> None:
    assert engine_function(get_aliased_input_tensor=None).in_place == set()


def profiles(*tops: int) -> tuple[EngineProfile, ...]:
    return tuple(
        EngineProfile(f"p{top}", {"x": Bounds((1, 4), (top, 4), (top, 4))}) for top in tops
    )


@pytest.mark.parametrize(("rows", "chosen"), [(1, 1), (2, 1), (3, 2), (8, 2), (9, 0), (64, 0)])
def test_tightest_profile_is_chosen(rows: int, chosen: int) -> None:
    function = engine_function(entry_point(profiles=profiles(64, 2, 8)))
    assert function.choose_profile({"x": (rows, 4), "k": (7,)}) == chosen


def test_shapes_that_no_profile_takes_are_named() -> None:
    function = engine_function(entry_point(profiles=profiles(2, 8)))
    with pytest.raises(SignatureError) as caught:
        function.choose_profile({"x": (9, 4), "k": (7,)})
    assert str(caught.value) == (
        "main(): no optimisation profile takes x [9, 4], k [7]; there are: "
        "p2: x [1, 4]..[2, 4]; p8: x [1, 4]..[8, 4]"
    )


def test_engine_without_profiles_has_fixed_shapes() -> None:
    assert engine_function(entry_point(profiles=())).choose_profile({"x": (9, 4)}) == 0


def test_failure_has_the_errors_of_the_library() -> None:
    function = engine_function()
    function.module.log.add("out of\nmemory")
    error = function.failure("the engine failed")
    assert type(error) is PeltonError
    assert str(error) == "main(): the engine failed: out of memory"


@pytest.mark.parametrize("array", [np.arange(7.0)[1:], np.zeros((0, 3)), np.int64(5), np.eye(3).T])
def test_copies_are_aligned_and_contiguous(array: Any) -> None:
    copied = _aligned(np.asarray(array))
    assert copied.ctypes.data % ALIGNMENT == 0 or not copied.nbytes
    assert copied.flags.c_contiguous and not np.shares_memory(copied, array)
    np.testing.assert_array_equal(copied, array)
