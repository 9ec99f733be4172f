"""Pool of tensors: aliases are stored once, and read back with type, traits and data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from pelton import aot
from pelton.aot.capture.programs.tensor_pool import TensorPool, read_tensors
from pelton.aot.spec.tensor_traits import DeviceTensorTrait, ExternalTensorTrait

X = torch.arange(6.0).reshape(2, 3)


def stored(path: Path, **tensors: torch.Tensor) -> dict[str, torch.Tensor]:
    pool = TensorPool({})
    for key, tensor in tensors.items():
        pool.add("f", key, tensor)
    pool.save(path)
    return read_tensors(path, pool.records())


def test_the_same_memory_is_one_tensor() -> None:
    pool = TensorPool({})
    assert pool.add("f", "w", X) == "w"
    assert pool.add("g", "v", X.detach()) == "w"
    assert pool.add("g", "w", X) == "w" and pool.shared == 2


def test_views_and_copies_are_tensors_of_their_own() -> None:
    pool = TensorPool({})
    names = [
        pool.add("f", key, t) for key, t in (("w", X), ("t", X.T), ("r", X[0]), ("c", X.clone()))
    ]
    assert names == ["w", "t", "r", "c"] and pool.shared == 0


def test_tensors_of_other_layouts_are_refused_by_name() -> None:
    with pytest.raises(aot.ExportError, match=r"tensor heads is a torch\.sparse_coo tensor"):
        TensorPool({}).add("f", "heads", torch.eye(2).to_sparse())


def test_a_name_of_another_tensor_gets_the_program() -> None:
    pool = TensorPool({})
    assert pool.add("f", "w", X) == "w"
    assert pool.add("g", "w", X.clone()) == "w@g"


def test_tensors_without_memory_are_told_by_identity() -> None:
    pool = TensorPool({})
    empty, other = torch.zeros(0), torch.zeros(0)
    assert [pool.add("f", k, t) for k, t in (("a", empty), ("b", other), ("c", empty))] == [
        "a", "b", "a",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "tensor",
    [
        X, X.T, torch.tensor(1.5), torch.zeros(0, 2), torch.tensor([True, False]),
        torch.ones(2, dtype=torch.bfloat16), torch.tensor([1 + 2j]),
        torch.tensor([255], dtype=torch.uint8),
    ],
    ids=lambda t: f"{t.dtype}{tuple(t.shape)}",
)  # fmt: skip
def test_tensors_are_read_as_they_were_stored(tensor: torch.Tensor, tmp_path: Path) -> None:
    found = stored(tmp_path / "a.irpa", x=tensor)["x"]
    assert found.dtype is tensor.dtype and torch.equal(found, tensor)
    assert not isinstance(found, torch.nn.Parameter)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_parameters_stay_parameters(requires_grad: bool, tmp_path: Path) -> None:
    given = torch.nn.Parameter(X.clone(), requires_grad)
    found = stored(tmp_path / "a.irpa", x=given)["x"]
    assert isinstance(found, torch.nn.Parameter) and found.requires_grad is requires_grad


def test_traits_are_stored(tmp_path: Path) -> None:
    given = X.clone()
    ExternalTensorTrait("scope", "name").set(given)
    DeviceTensorTrait(1, (2,)).set(given)
    found = stored(tmp_path / "a.irpa", x=given)["x"]
    assert ExternalTensorTrait.get(found) == ExternalTensorTrait("scope", "name")
    device = DeviceTensorTrait.get(found)
    assert device is not None and device.ordinal == 1 and [*device.queues] == [2]


def test_external_names_of_the_module_are_stored() -> None:
    pool = TensorPool({"w": ExternalTensorTrait("s", "n")})
    pool.add("f", "w", X)
    assert pool.records()["w"]["external"] == ["s", "n"]


def test_tensors_without_data_are_kept_by_kind(tmp_path: Path) -> None:
    found = stored(tmp_path / "a.irpa", w=torch.empty(2, 3, device="meta"), x=X)
    assert tuple(found["w"].shape) == (2, 3) and torch.equal(found["x"], X)


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_unknown_element_types_are_refused() -> None:
    with pytest.raises(aot.ExportError, match=r"tensor w has element type torch\.complex32"):
        TensorPool({}).add("f", "w", torch.zeros(2, dtype=torch.complex32))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"shape": [3, 2]}, r"tensor x .* of a\.irpa should be float32\[3, 2\]"),
        ({"dtype": "int32"}, r"should be int32\[2, 3\]"),
    ],
)
def test_an_archive_that_does_not_fit_is_refused(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    pool, path = TensorPool({}), tmp_path / "a.irpa"
    pool.add("f", "x", X)
    pool.save(path)
    record = pool.records()["x"]
    with pytest.raises(aot.ArtifactError, match=message):
        read_tensors(path, {"x": {**record, **change}})
    with pytest.raises(aot.ArtifactError, match=r"its archive a\.irpa has no tensor 'y'"):
        read_tensors(path, {"y": record})
