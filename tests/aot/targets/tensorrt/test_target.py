"""Engines of exported modules, built by TensorRT-RTX on the CPU, in packages."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from pelton import aot
from pelton.aot.targets.tensorrt import library
from pelton.runtime.artifacts.entry_points import Bounds
from pelton.runtime.artifacts.trtm import Package, open_trtm

pytest.importorskip("tensorrt_rtx")
pytest.importorskip("onnxscript")

BATCH = aot.NamedDimension("batch", 1, 4, 8)
LENGTH = aot.NamedDimension("length", 1, 16, 64)


class Block(nn.Module):
    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        heads = self.qkv(self.before(x)).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.after(x))


class Cache(aot.CompiledModule):
    seen = aot.export_global(torch.zeros(4, 3), mutable=True)

    def put(self, x=aot.AbstractTensor(4, 3, dtype=torch.float32)):  # type: ignore[no-untyped-def]
        self.seen = self.seen + x
        return self.seen

    def get(self):  # type: ignore[no-untyped-def]
        return self.seen


def linear(**options: Any) -> aot.ExportOutput:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU()).eval()
    return aot.export(net, args=[aot.InputInfo((BATCH, 4), torch.float32)], **options)


def compiled(out: aot.ExportOutput, folder: Path, **options: Any) -> Package:
    out.compile(folder / "m.trtm", target="tensorrt", **options)
    return open_trtm(folder / "m.trtm")


def test_an_entry_point_becomes_an_engine_with_the_bounds_of_its_sizes(tmp_path: Path) -> None:
    package = compiled(linear(), tmp_path)
    (function,) = package.manifest.functions
    assert function.profiles[0].inputs["input"] == Bounds((1, 4), (4, 4), (8, 4))
    assert str(function.signature) == str(linear().signatures["main"])
    assert len(package.read(function.members["engine"])) == function.report["engine_bytes"] > 0
    assert package.manifest.flavor == "rtx"
    assert package.manifest.compute_capabilities == ("8.0", "8.6", "8.9", "12.0", "12.1")


def test_a_saved_module_compiles_as_the_live_one(tmp_path: Path) -> None:
    linear().save_mlir(tmp_path / "m.mlirbc")
    live = compiled(linear(), tmp_path, reference=True)
    graph = bytes(live.read("reference/main.onnx"))
    loaded = compiled(aot.export(tmp_path / "m.mlirbc"), tmp_path, reference=True)
    assert bytes(loaded.read("reference/main.onnx")) == graph
    assert [f.inputs for f in loaded.manifest.functions] == [
        f.inputs for f in live.manifest.functions
    ]


def test_state_is_an_input_and_an_output_with_its_first_value(tmp_path: Path) -> None:
    package = compiled(aot.export(Cache), tmp_path)
    put, get = package.manifest.functions
    assert [port.name for port in put.inputs] == ["x", "state.seen"]
    assert [port.name for port in put.outputs] == ["result", "new_state.seen"]
    assert [port.kind for port in get.inputs] == ["state"]
    assert package.initial_state["seen"].shape == (4, 3)


def test_integers_that_shape_tensors_are_read_on_the_host(tmp_path: Path) -> None:
    rows = aot.NamedDimension("rows", 0, 4, 8)
    out = aot.export(
        lambda x, n: x[:, :n] * 2,
        args=[aot.InputInfo((rows, 16), torch.float32), aot.DimensionInputInfo((0, 4, 16))],
    )
    (function,) = compiled(out, tmp_path).manifest.functions
    assert [port.host for port in function.inputs] == [False, True]
    bounds = function.profiles[0].inputs
    assert bounds == {"x": Bounds((0, 16), (4, 16), (8, 16)), "n": Bounds((0,), (4,), (16,))}


def test_several_profiles_are_several_of_the_engine(tmp_path: Path) -> None:
    profiles = {"one": {"batch": 1}, "many": {"batch": (2, 4, 8)}}
    (function,) = compiled(linear(), tmp_path, profiles=profiles).manifest.functions
    assert [(p.name, p.inputs["input"].max) for p in function.profiles] == [
        ("one", (1, 4)),
        ("many", (8, 4)),
    ]
    assert [profile.name for profile in function.signature.profiles] == ["one", "many"]


def test_shared_weights_are_in_the_package_once(tmp_path: Path) -> None:
    class Two(aot.CompiledModule):
        net = nn.Linear(64, 64)
        weights = aot.export_parameters(net)

        def once(self, x=aot.AbstractTensor(2, 64, dtype=torch.float32)):  # type: ignore[no-untyped-def]
            return Two.run(x)

        def twice(self, x=aot.AbstractTensor(2, 64, dtype=torch.float32)):  # type: ignore[no-untyped-def]
            return Two.run(Two.run(x))

        run = aot.jittable(lambda x: Two.net(x))

    torch.manual_seed(0)
    package = compiled(aot.export(Two), tmp_path, weights="shared")
    names = [
        {p.name for p in f.inputs if p.kind == "parameter"} for f in package.manifest.functions
    ]
    assert names[0] == names[1] and len(names[0]) == 2
    assert len(package.parameters) == 2
    assert all(f.report["engine_bytes"] < 2_000_000 for f in package.manifest.functions)


def test_external_parameters_are_baked_in(tmp_path: Path) -> None:
    out = linear(external_parameters=True)
    out.save_parameters(tmp_path / "m.safetensors")
    out.save_mlir(tmp_path / "m.mlirbc")
    live = compiled(out, tmp_path, reference=True)
    graph = bytes(live.read("reference/main.onnx"))
    with pytest.raises(aot.ParameterError, match=r"model::0\.weight"):
        compiled(aot.export(tmp_path / "m.mlirbc"), tmp_path)
    loaded = aot.export(tmp_path / "m.mlirbc")
    package = compiled(loaded, tmp_path, reference=True, parameters=tmp_path / "m.safetensors")
    assert bytes(package.read("reference/main.onnx")) == graph


def test_other_parameters_are_another_entry_of_the_cache(tmp_path: Path) -> None:
    out = linear(external_parameters=True)
    shapes = {"0.weight": (6, 4), "0.bias": (6,)}
    for value in (1.0, 2.0):
        given = {name: torch.full(shape, value) for name, shape in shapes.items()}
        options = {"parameters": given, "weights": "shared", "cache_dir": tmp_path / "cache"}
        package = compiled(out, tmp_path, **options)
        assert package.parameters["model::0.bias"].array()[0] == value
    assert len(list((tmp_path / "cache").glob("*.artifact"))) == 2


def test_a_block_of_attention_stays_small(tmp_path: Path) -> None:
    blocks = nn.Sequential(Block(), Block(), Block()).eval()
    out = aot.export(blocks, args=[aot.InputInfo((BATCH, LENGTH, 32), torch.float32)])
    (report,) = out.dry_run("tensorrt")
    assert report.supported and report.layers is not None
    assert report.layers / 3 < 70  # 144 without the rewrites of selects and scales
    (function,) = compiled(out, tmp_path).manifest.functions
    assert function.report["layers"] == report.layers


def test_layers_are_described_with_the_lines_of_the_user(tmp_path: Path) -> None:
    package = compiled(linear(), tmp_path, layer_info=True)
    layers = json.loads(bytes(package.read("layers/main.json")))["network"]
    (activation,) = [layer for layer in layers if layer["kind"] == "activation"]
    assert activation["operator"] == "aten.relu.default"
    assert activation["outputs"][0]["shape"] == [-1, 6]


def test_doubles_are_refused_and_not_narrowed(tmp_path: Path) -> None:
    out = aot.export(lambda x: x.double().sin(), args=(torch.ones(2),))
    with pytest.raises(aot.UnsupportedOpError, match=r"no float64; use float32") as caught:
        compiled(out, tmp_path)
    assert "test_target.py" in str(caught.value)
    assert not (tmp_path / "m.trtm").exists()


def test_integers_of_64_bits_stay(tmp_path: Path) -> None:
    out = aot.export(lambda x: x * 3, args=(torch.tensor([2**40]),))
    (function,) = compiled(out, tmp_path).manifest.functions
    assert function.outputs[0].dtype.name == "int64"


class Hard(aot.CompiledModule):
    seen = aot.export_global(torch.zeros(4), mutable=True)

    def easy(self, x=aot.AbstractTensor(4, dtype=torch.float32)):  # type: ignore[no-untyped-def]
        self.seen = self.seen + x
        return self.seen

    def first(self, x=aot.AbstractTensor(4, dtype=torch.float32)):  # type: ignore[no-untyped-def]
        return Hard.scatter(x)

    def second(self, x=aot.AbstractTensor(4, dtype=torch.float32)):  # type: ignore[no-untyped-def]
        return Hard.narrow(self.seen + x)

    @aot.jittable
    def scatter(x):  # type: ignore[no-untyped-def]
        at = torch.tensor([0, 0, 1, 2])
        return torch.zeros(4).index_put((at,), x, accumulate=True), x.to(torch.uint8) + 1

    @aot.jittable
    def narrow(x):  # type: ignore[no-untyped-def]
        return x.to(torch.int16) + 1


def test_all_operators_of_all_functions_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(aot.UnsupportedOpError) as caught:
        compiled(aot.export(Hard), tmp_path)
    text = str(caught.value)
    assert "first()" in text and "second()" in text and "easy()" not in text
    assert "reduction is not supported" in text and "UINT8" in text and "no int16" in text
    assert text.count("test_target.py") >= 3
    assert not (tmp_path / "m.trtm").exists()


def test_a_dry_run_tells_what_is_taken_and_what_is_not() -> None:
    reports = {report.name: report for report in aot.export(Hard).dry_run("tensorrt")}
    assert reports["easy"].supported and reports["easy"].memory_bytes["state"] == 16
    refused = {refusal.operator for refusal in reports["first"].refusals}
    assert refused == {"aten.index_put.default", "aten._to_copy.default"}
    assert all(refusal.location for refusal in reports["first"].refusals)


def test_the_memory_of_a_dry_run_is_that_of_the_largest_sizes() -> None:
    (report,) = linear().dry_run("tensorrt")
    assert report.memory_bytes["inputs and outputs"] == 8 * (4 + 6) * 4
    assert report.memory_bytes["weights"] == (4 * 6 + 6) * 4
    assert report.memory_bytes["activations"] == 8 * 6 * 4  # those of the linear layer


def test_what_tensorrt_cannot_take_falls_back_to_iree(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        package = compiled(aot.export(Hard), tmp_path, fallback="iree", reference=True)
    members = {f.name: set(f.members) for f in package.manifest.functions}
    assert members["easy"] == {"engine", "reference"}
    assert members["first"] == members["second"] == {"fallback", "fallback_reference"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"flavor": "rtxx"}, "flavor must be one of 'auto', 'tensorrt', 'rtx', got 'rtxx'"),
        ({"weights": "none"}, "weights must be one of 'baked', 'shared', 'refit'"),
        ({"fallback": "onnx"}, "fallback must be one of None, 'iree'"),
        ({"workspace_bytes": 0}, "workspace_bytes must be a number of bytes, got 0"),
        ({"compute_capabilities": "8.9"}, "must be texts such as '8.9'"),
        ({"compute_capabilities": ["9.0"]}, "cannot build for 9.0 here; it can for 7.5, 8.0"),
        ({"weights": "refit"}, "for one kind of GPU: give one of compute_capabilities"),
        ({"weight": "baked"}, "no option 'weight'; known: flavor, optimization_level"),
        ({"profiles": [{"length": 1}]}, "no function has a dynamic dimension 'length'"),
    ],
)
def test_impossible_options_are_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(aot.ExportError, match=message.replace(".", r"\.")):
        compiled(linear(), tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_library_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_is_installed", lambda flavor: False)
    with pytest.raises(aot.MissingDependencyError, match=r"pip install 'pelton\[rtx\]'"):
        linear().compile("m.trtm", target="tensorrt")


def test_tensorrt_without_its_gpu_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    monkeypatch.setattr(library, "_is_installed", lambda flavor: True)
    monkeypatch.setattr(library, "installed_version", lambda flavor: "11.0")
    with pytest.raises(aot.DeviceError, match="builds on the GPU that engines are for"):
        library.open_library("tensorrt")


def test_a_failed_build_tells_what_tensorrt_said(tmp_path: Path) -> None:
    out = aot.export(nn.Linear(4, 4), args=(torch.ones(2, 4),))
    with pytest.raises(aot.CompileError, match="FP32 GEMM is not supported") as caught:
        compiled(out, tmp_path, compute_capabilities=["7.5"])
    assert "ERROR: " in caught.value.diagnostics
    assert not (tmp_path / "m.trtm").exists()


def test_the_name_of_a_package_is_kept_for_packages() -> None:
    with pytest.raises(aot.ExportError, match="give target='tensorrt'"):
        linear().compile("m.trtm")


def test_iree_leaves_parameters_outside(tmp_path: Path) -> None:
    with pytest.raises(aot.ExportError, match="give them to runtime"):
        linear().compile(tmp_path / "m.vmfb", parameters={"w": torch.ones(1)})
