"""CUDA devices: compiled code on torch's CUDA tensors, without host copies."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from pelton import aot, runtime

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[runtime.Executable, torch.nn.Module]:
    """A compiled program and its model, on the device."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 4))
    batch = aot.NamedDimension("batch", 1, 4, 64)
    out = aot.export(model.eval(), args=[aot.InputInfo((batch, 8), torch.float32)])
    major, minor = torch.cuda.get_device_capability()
    path = tmp_path_factory.mktemp("gpu") / "a.vmfb"
    out.compile(path, target=f"cuda:sm_{major}{minor}")
    return runtime.load(path), model.cuda()


@pytest.mark.parametrize("batch", [1, 4, 33, 64])
def test_results_are_those_of_eager_and_stay_on_the_device(pair, batch: int) -> None:
    exe, model = pair
    x = torch.randn(batch, 8, device="cuda")
    result = exe(x)
    assert result.is_cuda
    torch.testing.assert_close(result, model(x).detach(), rtol=1e-3, atol=1e-3)


def test_work_of_another_stream_is_waited_for(pair) -> None:
    exe, model = pair
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.zeros(64, 8, device="cuda")
        torch.cuda._sleep(50_000_000)
        x += 1
        result = exe(x)
    stream.synchronize()
    expected = model(torch.ones(64, 8, device="cuda")).detach()
    torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-3)


def test_host_tensor_is_refused(pair) -> None:
    exe, _ = pair
    with pytest.raises(runtime.DeviceError, match=r"move it with \.to\('cuda:0'\)"):
        exe(torch.ones(4, 8))


def test_gpu_check_is_right(tmp_path: Path) -> None:
    """The full script is for people; here the artifacts of one program are enough."""
    folder = Path(__file__).parents[2] / "benchmarks"
    major, minor = torch.cuda.get_device_capability()
    own = int(f"{major}{minor}")
    arch = f"sm_{max(known for known in (60, 70, 75, 80, 86, 89, 120) if known <= own)}"
    made = [sys.executable, folder / "cuda_artifacts.py", tmp_path, "mlp", "--arch", arch]
    subprocess.run(made, check=True)
    script = [sys.executable, folder / "gpu_check.py", tmp_path, "--json", tmp_path / "a.json"]
    subprocess.run(script, capture_output=True)
    assert json.loads((tmp_path / "a.json").read_text())["programs"]["mlp"]["right"]
