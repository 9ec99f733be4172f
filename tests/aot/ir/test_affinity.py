"""Programs of several devices: what the module says, and that two processors compute as one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from pelton import aot, runtime
from pelton.aot.custom_ops import transfer_to_device
from pelton.aot.ir.module import device_count
from pelton.runtime.artifacts.vmfb import read_info
from tests.programs import assert_same, check_ir, through_files


class TwoStages(torch.nn.Module):
    """Two layers, the second and its count of calls on device 1."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 8), torch.nn.Linear(8, 2)
        self.register_buffer("calls", torch.zeros(2))
        for tensor in (*self.second.parameters(), self.calls):
            aot.DeviceTensorTrait(1).set(tensor)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        hidden = transfer_to_device(torch.relu(self.first(x)), 1)
        self.calls.add_(1)
        return self.second(hidden) * y + self.calls


ARGS = (torch.zeros(3, 4), torch.zeros(3, 2))


@pytest.fixture(scope="module")
def model() -> TwoStages:
    return TwoStages().eval()


@pytest.fixture(scope="module")
def out(model: TwoStages) -> aot.ExportOutput:
    return aot.export(
        model,
        args=ARGS,
        dynamic_shapes=({0: "rows"}, {0: "rows"}),
        arg_device={0: aot.DeviceAffinity(0), 1: aot.DeviceAffinity(1)},
        external_parameters=lambda name: name.startswith("first"),
    )


@pytest.fixture(scope="module")
def artifact(
    out: aot.ExportOutput, model: TwoStages, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("devices")
    out.save_parameters(folder / "first.safetensors")
    through_files(out, folder, parameters=folder / "first.safetensors")
    return folder / "module.vmfb"


def load(artifact: Path, **options: object) -> runtime.Executable:
    return runtime.load(artifact, parameters=artifact.with_name("first.safetensors"), **options)  # type: ignore[arg-type]


def test_arguments_globals_and_values_name_their_devices(out: aot.ExportOutput) -> None:
    check_ir(
        out,
        """
        CHECK: @__auto.second.weight {stream.affinity = #hal.device.promise<@__device_1>}
        CHECK: func.func @main(
        CHECK-SAME: %arg0: {{[^{]*}}{iree.abi.affinity = #hal.device.promise<@__device_0>}
        CHECK-SAME: %arg1: {{[^{]*}}{iree.abi.affinity = #hal.device.promise<@__device_1>}
        CHECK: flow.tensor.transfer {{.*}} to #hal.device.promise<@__device_1>
        """,
    )
    assert device_count(out.mlir_module) == 2


@pytest.mark.parametrize("device", [None, "cpu", ["cpu", "cpu"], ["local-sync", "cpu"]], ids=str)
def test_two_processors_compute_what_eager_does(
    device: str | list[str] | None, artifact: Path, model: TwoStages
) -> None:
    exe = load(artifact, device=device)
    assert len(exe.device.split(", ")) == 2
    model.calls.zero_()
    for rows in (1, 3, 17):
        x, y = torch.randn(rows, 4), torch.randn(rows, 2)
        assert_same(exe(x, y), model(x, y))
    assert_same(exe.state["calls"], torch.full((2,), 3.0))


def test_artifact_says_how_many_devices_it_needs(artifact: Path) -> None:
    exe = load(artifact)
    assert exe.info.devices == 2
    for device, given in ((["cpu"], "1: cpu"), (["cpu"] * 3, "3: cpu, cpu, cpu")):
        with pytest.raises(runtime.DeviceError, match=f"for 2 devices, device= names {given}"):
            load(artifact, device=device)


def test_program_of_one_device_takes_one(tmp_path: Path) -> None:
    aot.export(lambda x: x + 1, args=(torch.ones(2),)).compile(tmp_path / "one.vmfb")
    assert runtime.load(tmp_path / "one.vmfb", device=["local-sync"]).device == "local-sync"
    with pytest.raises(runtime.DeviceError, match="for 1 device, device= names 2"):
        runtime.load(tmp_path / "one.vmfb", device=["cpu", "cpu"])


def test_procedures_move_values_and_take_arguments_on_devices(tmp_path: Path) -> None:
    class Moving(aot.CompiledModule):
        @aot.CompiledModule.signature_info(arg_device={1: aot.DeviceAffinity(1)})
        def add(self, x=aot.AbstractTensor(None, 2), y=aot.AbstractTensor(None, 2)):  # type: ignore[no-untyped-def]
            return transfer_to_device(x * 2, aot.DeviceAffinity(1, [0])) + y

    exe = through_files(aot.export(Moving), tmp_path)
    assert exe.info.devices == 2
    for rows in (1, 4):
        x, y = torch.randn(rows, 2), torch.randn(rows, 2)
        assert_same(exe.add(x, y), x * 2 + y)


def test_gpu_devices_are_declared_to_the_compiler(out: aot.ExportOutput, tmp_path: Path) -> None:
    out.compile(tmp_path / "two.vmfb", target="cuda:sm_80")
    info = read_info(tmp_path / "two.vmfb")
    assert (info.target["backend"], info.devices) == ("cuda", 2)


@pytest.mark.parametrize(
    ("arg_device", "message"),
    [
        ({2: aot.DeviceAffinity(0)}, "names the arguments 2; the function has 2 flat arguments"),
        ({-1: aot.DeviceAffinity(0)}, "names the arguments -1"),
        ({0: 1}, r"arg_device\[0\] is 1; give a DeviceAffinity"),
    ],
)
def test_wrong_device_of_an_argument_is_refused(arg_device: object, message: str) -> None:
    with pytest.raises(aot.ExportError, match=message):
        aot.export(lambda x, y: x + y, args=(ARGS[0], ARGS[0]), arg_device=arg_device)  # type: ignore[arg-type]


def test_devices_of_a_compiled_module_are_said_by_its_methods() -> None:
    class Empty(aot.CompiledModule):
        def nothing(self, x=aot.AbstractTensor(2)):  # type: ignore[no-untyped-def]
            return x

    with pytest.raises(aot.ExportError, match="said by CompiledModule"):
        aot.export(Empty, arg_device={0: aot.DeviceAffinity(0)})


def test_module_that_names_no_device_runs_on_any_one() -> None:
    assert device_count(aot.export(lambda x: x + 1, args=(torch.ones(2),)).mlir_module) == 0
