import copy
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from pelton import aot
from pelton.runtime.archive import open_archive

from .weights import NEEDED, TOKENS, Varied, varied


def exported(model: nn.Module, external: object = None) -> aot.ExportOutput:
    return aot.export(model, args=(TOKENS,), external_parameters=external)


def pair(**tensors: torch.Tensor) -> nn.Sequential:
    """Two layers without bias, which take `TOKENS` as numbers."""
    layers = nn.Sequential(nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False))
    for name, tensor in tensors.items():
        layers.get_submodule(name).weight = nn.Parameter(tensor)
    return layers.eval()


def export_pair(model: nn.Module, external: object = None) -> aot.ExportOutput:
    return aot.export(model, args=(torch.ones(3),), external_parameters=external)


def test_all_parameters_and_persistent_buffers_leave_the_module() -> None:
    out = exported(varied(), True)
    assert {scope: set(names) for scope, names in out.parameters.items()} == {"model": NEEDED}
    assert out.parameters["model"]["mask"][0].name == "bool"
    assert out.parameters["model"]["gain"][1] == ()


def test_text_names_the_scope_of_all_parameters() -> None:
    assert exported(varied(), "weights").parameters.keys() == {"weights"}


def test_function_picks_parameters_by_their_keys() -> None:
    out = exported(varied(), lambda name: name.startswith("body."))
    assert out.parameters["model"].keys() == {"body.weight", "body.bias"}


@pytest.mark.parametrize("external", [None, False, lambda name: False])
def test_parameters_stay_in_the_module_unless_asked_for(external: object) -> None:
    assert exported(varied(), external).parameters == {}


def test_what_is_no_choice_of_parameters_is_refused() -> None:
    with pytest.raises(aot.ExportError, match=r"must be True, .* not \['body.weight'\]"):
        exported(varied(), ["body.weight"])


def test_tied_weight_has_the_first_of_its_names() -> None:
    layers = pair()
    layers[1].weight = layers[0].weight
    assert export_pair(layers, True).parameters["model"].keys() == {"0.weight"}


def test_tied_weight_has_the_name_that_was_picked() -> None:
    layers = pair()
    layers[1].weight = layers[0].weight
    out = export_pair(layers, lambda name: name == "1.weight")
    assert out.parameters["model"].keys() == {"1.weight"}


def test_exported_program_has_its_own_keys() -> None:
    program = torch.export.export(varied(), (TOKENS,))
    out = aot.export(program, external_parameters=True)
    assert out.parameters["model"].keys() == NEEDED


def test_export_leaves_the_model_as_it_was() -> None:
    model = varied()
    before = {name: (value, value.clone()) for name, value in model.state_dict().items()}
    exported(model, True)
    for name, value in model.state_dict().items():
        assert value.data_ptr() == before[name][0].data_ptr()
        assert torch.equal(value, before[name][1])
    assert all(aot.ExternalTensorTrait.get(value) is None for value in model.parameters())


# Modules that were externalised


def test_externalised_module_needs_no_argument() -> None:
    layers = pair()
    aot.externalize_module_parameters(layers, external_scope="net", prefix="a")
    assert export_pair(layers).parameters.keys() == {"net"}
    assert export_pair(layers).parameters["net"].keys() == {"a.0.weight", "a.1.weight"}


@pytest.mark.parametrize(
    "change", [copy.deepcopy, lambda layers: layers.forward], ids=["copy", "bound method"]
)
def test_names_are_found_by_way_of_the_module(change: Callable[[nn.Module], nn.Module]) -> None:
    layers = pair()
    aot.externalize_module_parameters(layers, prefix="a")
    assert export_pair(change(layers)).parameters["model"].keys() == {"a.0.weight", "a.1.weight"}


def test_scope_of_the_export_goes_before_that_of_the_module() -> None:
    layers = pair()
    aot.externalize_module_parameters(layers, external_scope="net")
    assert export_pair(layers, "mine").parameters.keys() == {"mine"}


def test_trait_makes_a_single_tensor_external() -> None:
    layers = pair()
    aot.ExternalTensorTrait("scope", "first").set(layers[0].weight)
    parameters = export_pair(layers).parameters
    assert {scope: set(names) for scope, names in parameters.items()} == {"scope": {"first"}}


def test_submodules_may_have_scopes_of_their_own(tmp_path: Path) -> None:
    layers = pair()
    aot.externalize_module_parameters(layers[0], external_scope="a")
    aot.externalize_module_parameters(layers[1], external_scope="b")
    out = export_pair(layers)
    assert {scope: set(names) for scope, names in out.parameters.items()} == {
        "a": {"weight"},
        "b": {"weight"},
    }
    for scope, layer in zip("ab", layers, strict=True):
        path = out.save_parameters(tmp_path / f"{scope}.irpa", scope=scope)
        assert open_archive(path)["weight"].array().tolist() == layer.weight.tolist()
    with pytest.raises(aot.ParameterError, match=r"several scopes \(a, b\); name one"):
        out.save_parameters(tmp_path / "all.irpa")
    with pytest.raises(aot.ParameterError, match="no scope 'c'; there are: a, b"):
        out.save_parameters(tmp_path / "c.irpa", scope="c")


def test_one_name_for_two_tensors_is_refused() -> None:
    layers = pair()
    for layer in layers:
        aot.externalize_module_parameters(layer)
    with pytest.raises(aot.ExportError, match="two tensors have the external name 'weight'"):
        export_pair(layers)


def test_one_name_for_one_tensor_is_stored_once(tmp_path: Path) -> None:
    layers = pair(**{"0": torch.eye(3)})
    layers[1].weight = nn.Parameter(layers[0].weight.detach())  # the same memory
    for layer in layers:
        aot.externalize_module_parameters(layer)
    path = export_pair(layers).save_parameters(tmp_path / "a.irpa")
    assert list(open_archive(path)) == ["weight"]


@pytest.mark.parametrize("prefix", ['a"b', "a\\b", "a\nb"])
def test_name_that_iree_cannot_store_is_refused(prefix: str) -> None:
    layers = pair()
    aot.externalize_module_parameters(layers, prefix=prefix)
    with pytest.raises(aot.ExportError, match="has a quote, a backslash or a control character"):
        export_pair(layers)


# Saving


@pytest.fixture(scope="module")
def model() -> Varied:
    return varied()


@pytest.fixture(scope="module")
def out(model: Varied) -> aot.ExportOutput:
    return exported(model, True)


@pytest.mark.parametrize("suffix", [".irpa", ".safetensors"])
def test_saved_is_what_the_module_needs_and_nothing_else(
    model: Varied, out: aot.ExportOutput, tmp_path: Path, suffix: str
) -> None:
    archive = aot.ParameterArchive(out.save_parameters(tmp_path / f"a{suffix}"))
    assert set(archive) == NEEDED
    for name, entry in archive.items():
        expected = model.state_dict()[name]
        assert entry.as_tensor().dtype == expected.dtype
        assert torch.equal(entry.as_tensor(), expected)


def test_saved_are_the_values_at_the_time_of_saving(tmp_path: Path) -> None:
    layers = pair()
    out = export_pair(layers, True)
    with torch.no_grad():
        layers[0].weight.fill_(7)
    path = out.save_parameters(tmp_path / "a.irpa")
    assert open_archive(path)["0.weight"].array().max() == 7


def test_module_from_a_file_has_names_but_no_values(out: aot.ExportOutput, tmp_path: Path) -> None:
    out.save_mlir(tmp_path / "a.mlirbc")
    loaded = aot.export(tmp_path / "a.mlirbc")
    assert loaded.parameters == out.parameters
    with pytest.raises(aot.ParameterError, match="has the names of parameters, not their values"):
        loaded.save_parameters(tmp_path / "a.irpa")


def test_module_without_external_parameters_saves_an_empty_archive(tmp_path: Path) -> None:
    path = export_pair(pair()).save_parameters(tmp_path / "a.irpa")
    assert len(open_archive(path)) == 0
