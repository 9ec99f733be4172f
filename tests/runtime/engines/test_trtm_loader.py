"""Package loader: devices, weights, and packages without IREE."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pelton.runtime.archive import write_archive
from pelton.runtime.archive.parameter import parameter_of
from pelton.runtime.artifacts.entry_points import STATE
from pelton.runtime.artifacts.trtm import write_trtm
from pelton.runtime.engines import trtm_loader
from pelton.runtime.engines.trtm_loader import choose_weights, load_trtm
from pelton.runtime.errors import ArtifactError, DeviceError, ParameterError
from tests.runtime.children import run_child
from tests.runtime.manifests import ENGINE, entry_point, manifest, port


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_archive(tmp_path / STATE, [parameter_of("total", np.zeros(4, np.float32))])
    write_trtm(tmp_path / "m.trtm", manifest(), {ENGINE: b"plan", STATE: tmp_path / STATE})
    return tmp_path / "m.trtm"


@pytest.mark.parametrize("device", ["cpu", "vulkan", "local-task", "reference:0", ""])
def test_other_devices_are_refused(path: Path, device: str) -> None:
    if not device:
        with pytest.raises(DeviceError, match=r"device= names 0: \[\]"):
            load_trtm(path, [], None, False)
        return
    with pytest.raises(DeviceError, match=f"there is no device {device!r} for it; known: cuda"):
        load_trtm(path, device, None, False)


def test_one_device_may_be_in_a_list(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trtm_loader, "TensorRTModule", lambda *args: args)
    package, device, weights = load_trtm(path, ["cuda:1"], None, False)  # type: ignore[misc]
    assert (package.path, device, weights) == (path, "cuda:1", {})
    assert load_trtm(path, None, None, False)[1] == "cuda"  # type: ignore[index]
    with pytest.raises(DeviceError, match="is for 1 device, device= names 2: "):
        load_trtm(path, ["cuda:0", "cuda:1"], None, False)


def test_reference_graphs_are_needed_on_the_cpu(path: Path) -> None:
    with pytest.raises(ArtifactError, match="has no reference graph of main; compile it with"):
        load_trtm(path, "reference", None, False)


# Weights

WEIGHT, BIAS, OWN = (np.full(4, value, np.float32) for value in (1, 2, 3))


def package(*origins: str) -> Any:
    ports = [port(origin, (4,), "parameter") for origin in origins]
    function = replace(entry_point(), inputs=(*entry_point().inputs, *ports))
    stored = {origin: parameter_of(origin, OWN) for origin in origins}
    return SimpleNamespace(path="m.trtm", parameters=stored, manifest=manifest(function))


def arrays(weights: Any) -> dict[str, Any]:
    return {name: weight.array().tolist() for name, weight in weights.items()}


def test_weights_of_the_package_are_the_default() -> None:
    weights = choose_weights(package("model::w", "@constant"), None, False)
    assert arrays(weights) == {"model::w": OWN.tolist(), "@constant": OWN.tolist()}


@pytest.mark.parametrize("scoped", [False, True])
def test_weights_of_the_user_come_first(scoped: bool) -> None:
    given: Any = {"w": WEIGHT, "b": BIAS}
    weights = choose_weights(
        package("model::w", "model::b", "@constant"), {"model": given} if scoped else given, False
    )
    assert arrays(weights) == {
        "model::w": WEIGHT.tolist(), "model::b": BIAS.tolist(), "@constant": OWN.tolist(),
    }  # fmt: skip


def test_weights_that_do_not_fit_are_refused() -> None:
    both = package("model::w", "model::b")
    with pytest.raises(ParameterError, match=r"missing \(1\): model::b \(float32 4\)"):
        choose_weights(both, {"w": WEIGHT}, False)
    with pytest.raises(ParameterError, match=r"not used by the program \(1\): c"):
        choose_weights(package("model::w"), {"w": WEIGHT, "c": BIAS}, False)
    assert choose_weights(package("model::w"), {"w": WEIGHT, "c": BIAS}, True)


def test_package_without_external_weights_takes_none() -> None:
    with pytest.raises(ParameterError, match="takes no parameters: its weights are in its engines"):
        choose_weights(package("@constant"), {"w": WEIGHT}, True)


def test_packages_are_read_where_iree_is_not_installed(path: Path) -> None:
    run_child(
        """
        import sys

        class Absent:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] == "iree":
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Absent())
        from pelton import runtime
        from pelton.runtime.engines import onnxruntime, tensorrt, trtm_loader
        try:
            runtime.load(sys.argv[1], device="reference")
        except runtime.ArtifactError as error:
            assert "has no reference graph" in str(error), error
        else:
            raise AssertionError("it was loaded")
        assert not [name for name in sys.modules if name.partition(".")[0] == "iree"]
        """,
        path,
    )
