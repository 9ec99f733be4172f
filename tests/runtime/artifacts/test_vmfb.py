"""IREE modules as files: checksums, metadata, and the CPU they were compiled for."""

import json
import platform
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pelton.runtime.artifacts import vmfb
from pelton.runtime.artifacts.vmfb import VmfbInfo
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.device import cpu
from pelton.runtime.errors import ArtifactError, DeviceError

INFO = VmfbInfo(
    target={"backend": "llvm-cpu", "arch": "x86_64", "cpu": "generic", "features": ["sse2"]},
    versions={"pelton": "0.1.0"},
    parameters={"model": {"w": (DTYPES["float32"], (2, 3)), "b": (DTYPES["int8"], ())}},
    options={"optimization_level": 3},
)
CODE = bytes(range(256)) * 9


def write_zip(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """Return a file of the form that IREE writes, with Pelton's member."""
    path = write_zip(tmp_path / "m.vmfb", {"module.fb": CODE, "code.so": CODE})
    vmfb.append_info(path, INFO)
    return path


def refusal(path: Path) -> str:
    with pytest.raises(ArtifactError) as caught:
        vmfb.read_info(path)
    return str(caught.value)


def test_info_is_read_as_it_was_written(module: Path) -> None:
    assert vmfb.read_info(module) == INFO


def test_same_info_gives_the_same_bytes(tmp_path: Path) -> None:
    original = write_zip(tmp_path / "original", {"module.fb": CODE}).read_bytes()
    for name in "ab":
        (tmp_path / name).write_bytes(original)
        vmfb.append_info(tmp_path / name, INFO)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes().startswith(original[:2000])


def test_module_of_other_tools_has_no_info(tmp_path: Path) -> None:
    assert vmfb.read_info(write_zip(tmp_path / "m", {"module.fb": CODE})) == VmfbInfo()


def test_bare_bytecode_is_refused_as_it_has_no_checksum(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"\x18\0\0\0IREE")
    assert refusal(tmp_path / "m").startswith(f"{tmp_path / 'm'} is bare bytecode without a checks")


# Files


def test_zip_without_a_module_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "m", {"weights.bin": CODE})
    assert refusal(path) == f"{path} is not an IREE module: it holds ['weights.bin']"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_zip_with_a_member_twice_is_refused(module: Path) -> None:
    with zipfile.ZipFile(module, "a") as archive:
        archive.writestr("module.fb", CODE)
    assert refusal(module) == f"{module}: it holds 'module.fb' twice"


def test_compressed_member_is_refused(tmp_path: Path) -> None:
    path = write_zip(tmp_path / "m", {"module.fb": CODE}, zipfile.ZIP_DEFLATED)
    assert refusal(path) == f"{path} is damaged: module.fb is not stored as it is"


@pytest.mark.parametrize("length", [2, 30, 100, 2000, -1, -30])
def test_truncated_file_is_refused(module: Path, length: int) -> None:
    module.write_bytes(module.read_bytes()[:length])
    assert refusal(module) == f"{module} is truncated or damaged: File is not a zip file"


@pytest.mark.parametrize("member", ["module.fb", "code.so", "pelton.json"])
def test_changed_member_is_refused_by_its_checksum(module: Path, member: str) -> None:
    with zipfile.ZipFile(module) as archive:
        offset = archive.getinfo(member).header_offset
    data = bytearray(module.read_bytes())
    data[offset + 100] ^= 1
    module.write_bytes(data)
    assert f"{module} is damaged: the checksum of {member} is 0x" in refusal(module)


def test_member_that_says_encrypted_is_refused(module: Path) -> None:
    data = bytearray(module.read_bytes())
    with zipfile.ZipFile(module) as archive:
        directory = archive.start_dir
        name = data.index(b"pelton.json", directory)
    data[name - 46 + 8] |= 1
    module.write_bytes(data)
    assert refusal(module) == f"{module} is damaged: pelton.json is not stored as it is"


# Pelton's member


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("target", 3),
        ("target", {"features": "avx2"}),
        ("target", {"features": [1]}),
        ("target", {"devices": 0}),
        ("target", {"devices": "2"}),
        ("target", {"devices": 10**9}),
        ("versions", 3),
        ("parameters", {"model": 3}),
        ("parameters", {"model": {"w": ["float33", []]}}),
        ("parameters", {"model": {"w": ["float32", ["x"]]}}),
        ("parameters", {"model": {"w": ["float32"]}}),
        ("options", [1]),
    ],
)
def test_damaged_field_is_refused(field: str, value: Any) -> None:
    text = json.dumps({**json.loads(INFO.to_json()), field: value})
    with pytest.raises(ArtifactError, match=r"pelton\.json is damaged"):
        VmfbInfo.from_json(text.encode())


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"\xff", b"null", b"[" * 9999])
def test_text_that_is_no_info_is_refused(text: bytes) -> None:
    with pytest.raises(ArtifactError, match=r"pelton\.json is damaged"):
        VmfbInfo.from_json(text)


def test_other_format_is_refused_with_both_versions(tmp_path: Path) -> None:
    text = json.dumps({**json.loads(INFO.to_json()), "format": 7})
    path = write_zip(tmp_path / "m", {"module.fb": CODE, "pelton.json": text.encode()})
    assert refusal(path) == (
        f"{path}: format 7 of pelton.json, this version of Pelton reads format {vmfb.FORMAT}; "
        "compile the module again"
    )


# Processors


def refuse_processor(**target: Any) -> str:
    with pytest.raises(DeviceError) as caught:
        vmfb.check_cpu(VmfbInfo(target={"backend": "llvm-cpu", **target}), "m.vmfb")
    return str(caught.value)


def test_module_for_this_processor_is_accepted() -> None:
    here = [name for name, has in cpu.cpu_features().items() if has]
    target = {"arch": platform.machine(), "cpu": "host", "features": here}
    vmfb.check_cpu(VmfbInfo(target=target), "m.vmfb")


def test_module_that_names_no_architecture_is_accepted() -> None:
    vmfb.check_cpu(VmfbInfo(target={"backend": "cuda"}), "m.vmfb")


def test_other_architecture_is_refused_with_both() -> None:
    assert refuse_processor(arch="riscv64") == (
        f"m.vmfb was compiled for riscv64, this machine is {platform.machine()}"
    )


def test_missing_processor_features_are_all_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vmfb, "missing_features", lambda needed: [n for n in needed if n > "b"])
    message = refuse_processor(
        arch=platform.machine(), cpu="znver9", features=["avx2", "jumping", "swimming"]
    )
    assert message == (
        "m.vmfb was compiled for CPU 'znver9' with features that this one lacks: "
        "jumping, swimming; compile with target_cpu='generic' or on this machine"
    )


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ({"backend": "cuda", "gpu": "sm_80"}, "cuda (sm_80)"),
        ({"backend": "vmvx"}, "vmvx"),
        ({}, "unknown"),
    ],
)
def test_target_is_described(target: dict[str, str], text: str) -> None:
    assert vmfb.describe_target(target) == text
