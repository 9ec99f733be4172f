"""IREE modules: devices, signatures, aliased results and errors."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from pelton.runtime.artifacts.vmfb import VmfbInfo, read_info
from pelton.runtime.device.devices import open_devices
from pelton.runtime.engines import iree
from pelton.runtime.engines.iree import IreeModule, load_vmfb
from pelton.runtime.errors import (
    ArtifactError,
    DeviceError,
    ParameterError,
    PeltonError,
    SignatureError,
)

Compiled = Callable[[str], Path]


def load(path: Path, device: Any = "local-sync", parameters: Any = None) -> IreeModule:
    return load_vmfb(path, device, parameters, False)


def test_leaves_in_leaves_out(compiled: Compiled) -> None:
    module = load(compiled("plus_number"))
    (signature,) = module.signatures().values()
    function = module.function(signature, stateful=False)
    result, number = function([np.ones(4, np.float32), 2])
    assert (result.tolist(), number) == ([3] * 4, 2)
    assert isinstance(function([torch.ones(4), 2])[0], torch.Tensor)


def test_constants_of_the_result_are_in_the_signature(compiled: Compiled) -> None:
    module = load(compiled("of_constants"))
    (signature,) = module.signatures().values()
    tensor, *constants = module.function(signature, stateful=False)([])
    assert constants == [0.5, "done"] and tensor.tolist() == [1, 1, 1]


def test_result_that_aliases_an_argument_is_copied(compiled: Compiled) -> None:
    module = load(compiled("itself_and_views"))
    (signature,) = module.signatures().values()
    x = torch.randn(3, 4)
    results = module.function(signature, stateful=False)([x])
    assert [result.tolist() for result in results] == [
        x.tolist(), x.reshape(4, 3).tolist(), x[1:].tolist(),
    ]  # fmt: skip
    x.zero_()
    assert all(result.abs().sum() > 0 for result in results)


@pytest.mark.parametrize(
    ("address", "aliases"), [(99, False), (100, True), (107, True), (108, False), (0, False)]
)
def test_address_within_an_argument(address: int, aliases: bool) -> None:
    borrowed = [(100, SimpleNamespace(byte_length=8)), (500, SimpleNamespace(byte_length=0))]
    assert iree._aliases(address, borrowed) is aliases


def test_state_is_reset_by_a_new_context(compiled: Compiled) -> None:
    module = load(compiled("counter"))
    signatures = module.signatures()
    call = module.function(signatures["main"], stateful=True)
    read = module.function(signatures["pelton.state.get.calls"], stateful=True)
    call([np.ones(4, np.float32)])
    assert int(read([])[0]) == 1
    module.reset()
    assert int(read([])[0]) == 0


def test_file_is_copied_after_it_was_unlinked(compiled: Compiled, tmp_path: Path) -> None:
    path = tmp_path / "m.vmfb"
    data = compiled("add_one").read_bytes()
    path.write_bytes(data)
    module = load(path)
    path.unlink()
    target = io.BytesIO()
    module.copy_to(target)
    assert target.getvalue() == data


# Devices


def test_number_of_devices_is_that_of_the_artifact(compiled: Compiled) -> None:
    path = compiled("add_one")
    assert load(path, ["local-sync"]).device_names == "local-sync"
    with pytest.raises(DeviceError, match="is for 1 device, device= names 2: cpu, local-sync"):
        load(path, ["cpu", "local-sync"])


def test_several_devices_must_be_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = iree._open_devices(Path("m"), "cpu", 2)
    assert [device.is_cpu for device in opened] == [True, True]
    gpus = [SimpleNamespace(is_cpu=False), SimpleNamespace(is_cpu=False)]
    monkeypatch.setattr(iree, "open_devices", lambda names: gpus)
    with pytest.raises(DeviceError, match=r"several devices of a program must be CPUs, as in"):
        iree._open_devices(Path("m"), ["cuda:0", "cuda:1"], 2)


def test_device_of_an_unknown_backend_must_be_named(
    compiled: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = VmfbInfo(target={"backend": "webgpu"})
    monkeypatch.setattr(iree.vmfb, "read_info", lambda path: info)
    with pytest.raises(DeviceError, match="was compiled for 'webgpu'; name the device"):
        load(compiled("add_one"), device=None)
    assert load(compiled("add_one"), device="local-sync").info is info


# Errors


def test_bytecode_of_another_version_is_refused(tmp_path: Path, compiled: Compiled) -> None:
    info = read_info(compiled("add_one"))
    (tmp_path / "m.vmfb").write_bytes(b"no bytecode" * 10)
    with pytest.raises(ArtifactError, match=r"is not a module that IREE .* can read \(made by "):
        IreeModule(tmp_path / "m.vmfb", info, open_devices(["local-sync"]))


def test_missing_parameters_are_named(compiled: Compiled) -> None:
    path = compiled("weighted")
    with pytest.raises(ParameterError, match=r"missing \(1\): model::weight"):
        load(path, parameters={"other": np.zeros(4, np.float32)})
    assert load(path, parameters={"weight": np.ones(4, np.float32)}).signatures()


def test_signature_of_another_function_is_refused(compiled: Compiled) -> None:
    module = load(compiled("add_one"))
    text = module.signatures()["main"].to_json()
    with pytest.raises(ArtifactError, match="entry point 'other' has the signature of 'main'"):
        module._read_signature("other", text)
    with pytest.raises(ArtifactError, match="entry point 'main': not a signature: "):
        module._read_signature("main", "{")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "x.c:1: INVALID_ARGUMENT; tensor shape mismatch",
            SignatureError,
            "main(): the runtime refused an argument: tensor shape mismatch",
        ),
        (
            "x.c:1: INVALID_ARGUMENT; no such\n file",
            PeltonError,
            "main() failed at run time: no such file",
        ),
        ("x.c:1: INTERNAL; overflow", PeltonError, "main() failed at run time: overflow"),
    ],
)
def test_error_of_a_call_is_one_of_ours(text: str, kind: type, message: str) -> None:
    error = iree._runtime_error("main", RuntimeError(text))
    assert type(error) is kind and str(error) == message


def test_argument_of_another_device_is_named(compiled: Compiled) -> None:
    module = load(compiled("add_one"))
    function = module.function(module.signatures()["main"], stateful=False)
    with pytest.raises(DeviceError, match=r"^main\(\): argument x: a tensor on meta was given"):
        function([torch.zeros(4, device="meta")])
