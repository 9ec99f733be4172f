"""The programs of the samples, back in PyTorch and as TensorRT engines: what eager computes.

Without a GPU, the engines are built and their graphs are run by onnxruntime.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from pelton import aot, runtime

from ..programs import assert_same

SAMPLES = Path(__file__).parents[2] / "samples"
FORMS = ("torch", "engine")

Sample = Callable[[str], Any]


@pytest.fixture
def sample(monkeypatch: pytest.MonkeyPatch) -> Sample:
    """Return what imports a sample by name."""
    monkeypatch.syspath_prepend(SAMPLES)
    return importlib.import_module


def form(kind: str, out: aot.ExportOutput, folder: Path, parameters: Any = None) -> Any:
    """Return a module's entry points as attributes: raised to PyTorch, or as engines' graphs."""
    if kind == "torch":
        return aot.to_torch(out, parameters=parameters)
    pytest.importorskip("tensorrt_rtx")
    path = folder / "m.trtm"
    out.compile(path, target="tensorrt", reference=True, parameters=parameters)
    return runtime.load(path, device="reference")


def check(made: Callable[..., Any], model: Callable[..., Any], calls: Sequence[Any]) -> None:
    for args in calls:
        with torch.no_grad():
            assert_same(made(*args), model(*args), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("number", [0, 1], ids=["classifier", "transformer"])
def test_image_and_text(kind: str, number: int, sample: Sample, tmp_path: Path) -> None:
    case = sample("image_and_text").make_cases(small=True)[number]
    shape = (aot.NamedDimension("batch", 1, 4, 16), *case.size)
    out = aot.export(case.model, args=[aot.InputInfo(shape, case.inputs(1).dtype)])
    check(form(kind, out, tmp_path), case.model, [(case.inputs(n),) for n in (1, 4, 16)])


@pytest.mark.parametrize("kind", FORMS)
def test_generate_tokens(kind: str, sample: Sample, tmp_path: Path) -> None:
    module = sample("generate_tokens")
    torch.manual_seed(0)
    gpt = module.Gpt(module.Config(1, 4, 32, 64, 32)).eval().requires_grad_(False)
    decoder = form(kind, aot.export(module.decoder_of(gpt)), tmp_path)
    for prompt in (torch.arange(3), torch.arange(11)):
        token = decoder.prefill(prompt)
        made = [int(token)]
        for _ in range(5):
            token = decoder.decode(token)
            made.append(int(token))
        assert made == module.eager_generate(gpt, prompt, 6)


@pytest.mark.parametrize("kind", FORMS)
def test_prefill_decode(kind: str, sample: Sample, tmp_path: Path) -> None:
    module = sample("prefill_decode")
    torch.manual_seed(0)
    gpt = module.Gpt(module.Config(1, 4, 32, 64, 32)).eval().requires_grad_(False)
    made = form(kind, aot.export(module.programs_of(gpt)), tmp_path)
    for prompt in (torch.arange(1), torch.arange(16), torch.arange(26)):
        gpt.length.zero_()
        with torch.no_grad():
            expected = module.generate(gpt, gpt, prompt, 6)
        assert module.generate(made.prefill, made.decode, prompt, 6) == expected
        assert int(made.length()) == len(prompt) + 5


@pytest.mark.parametrize("kind", FORMS)
def test_meta_weights(kind: str, sample: Sample, tmp_path: Path) -> None:
    module = sample("meta_weights")
    config = module.CONFIGS["tiny"]
    out, _ = module.export(config)
    torch.manual_seed(0)
    model = module.Decoder(config).eval()
    archive = aot.save_module_parameters(tmp_path / "tiny.irpa", model)
    made = form(kind, out, tmp_path, archive)
    tokens = torch.randint(0, config.vocabulary, (1, config.length))
    check(made, model, [(tokens[:, :length],) for length in (1, 32, 128)])


@pytest.mark.parametrize("kind", FORMS)
def test_vision_pipeline(kind: str, sample: Sample, tmp_path: Path) -> None:
    module = sample("vision_pipeline")
    inputs = module.make_inputs(5, 96, "cpu")
    pipeline = module.Pipeline(module.Scorer(4)).eval()
    made = form(kind, aot.export(pipeline, args=inputs), tmp_path)
    check(made, pipeline, [inputs, module.make_inputs(5, 96, "cpu")])


@pytest.mark.parametrize("kind", FORMS)
def test_build_models(kind: str, sample: Sample, tmp_path: Path) -> None:
    module = sample("build_models")
    torch.manual_seed(0)  # as the sample does
    model = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))
    made = form(kind, module.classifier(8), tmp_path)
    check(made, model, [(torch.randn(n, 16),) for n in (1, 4, 64)])


def test_fused_operator_has_no_other_form(sample: Sample, tmp_path: Path) -> None:
    module = sample("fused_operator")
    shape = (aot.NamedDimension("rows", 1, 8, 512), 16)
    out = aot.export(module.Block(16).eval(), args=[aot.InputInfo(shape, torch.float32)])
    with pytest.raises(aot.UnsupportedOpError, match=r"custom operator .*gated_norm"):
        aot.to_torch(out)
    with pytest.raises(aot.UnsupportedOpError, match=r"custom operator .*gated_norm"):
        out.compile(tmp_path / "m.trtm", target="tensorrt")
