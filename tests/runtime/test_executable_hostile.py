"""Files that are not valid modules are refused, in a child process where they might crash."""

import random
import zipfile
from pathlib import Path

import pytest

from pelton import runtime
from pelton.runtime.errors import ArtifactError

from .children import run_child
from .conftest import Compiled

LOAD_ALL = """
    import sys
    from pathlib import Path

    import numpy as np
    from pelton import runtime
    from pelton.runtime.errors import ArtifactError

    for path in sorted(Path(sys.argv[1]).iterdir()):
        try:
            result = runtime.load(path)(np.ones(4, np.float32)).tolist()
        except ArtifactError as error:
            assert str(path) in str(error), error
            print(path.name, "refused")
        else:
            print(path.name, "right" if result == [2, 2, 2, 2] else f"wrong: {result}")
"""


def outcomes(folder: Path, variants: dict[str, bytes]) -> dict[str, str]:
    """Load and call each variant of a module in one child process; return what came of each."""
    folder.mkdir(exist_ok=True)
    for name, data in variants.items():
        (folder / name).write_bytes(data)
    lines = run_child(LOAD_ALL, folder, timeout_s=120).splitlines()
    return dict(line.split(" ", 1) for line in lines)


def refusal(path: Path) -> str:
    with pytest.raises(ArtifactError) as caught:
        runtime.load(path)
    return str(caught.value)


def test_truncated_module_is_refused_at_every_length(compiled: Compiled, tmp_path: Path) -> None:
    data = compiled("add_one").read_bytes()
    lengths = {
        *range(1, 64, 7),
        *range(64, len(data), len(data) // 60),
        *range(len(data) - 60, len(data)),
    }
    variants = {f"{length:06}": data[:length] for length in lengths}
    found = outcomes(tmp_path / "variants", variants)
    assert found == dict.fromkeys(variants, "refused")


def test_module_with_a_flipped_bit_is_refused_or_right(compiled: Compiled, tmp_path: Path) -> None:
    data = compiled("add_one").read_bytes()
    chance = random.Random(1)
    with zipfile.ZipFile(compiled("add_one")) as archive:
        headers = [m.header_offset + chance.randrange(46) for m in archive.infolist()] * 10
        directory = [chance.randrange(archive.start_dir, len(data)) for _ in range(80)]
    positions = [*headers, *directory, *(chance.randrange(len(data)) for _ in range(200))]
    variants = {}
    for index, position in enumerate(positions):
        changed = bytearray(data)
        changed[position] ^= 1 << chance.randrange(8)
        variants[f"{index:04}_at_{position}"] = bytes(changed)
    found = outcomes(tmp_path / "variants", variants)
    assert set(found) == set(variants)
    assert set(found.values()) == {"refused", "right"}


def test_random_bytes_are_refused(tmp_path: Path) -> None:
    chance = random.Random(2)
    magics = (b"", b"PK\x03\x04", b"PK\x05\x06", b"\x18\0\0\0IREE", b"\x1c\0\0\0IREE\x10\0\0\0")
    variants = {
        f"{count:03}": magics[count % len(magics)] + chance.randbytes(chance.randrange(1, 400))
        for count in range(100)
    }
    found = outcomes(tmp_path / "variants", variants)
    assert found == dict.fromkeys(variants, "refused")


def test_module_whose_code_is_of_another_module_is_refused(
    compiled: Compiled, tmp_path: Path
) -> None:
    path = tmp_path / "m.vmfb"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("module.fb", b"\x18\0\0\0IREE" + bytes(200))
    assert f"{path} is not a module that IREE" in refusal(path)


def test_zip_without_a_module_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.vmfb"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("weights.bin", b"1234")
    assert refusal(path) == f"{path} is not an IREE module: it holds ['weights.bin']"


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "{path} is empty"),
        (b"hello", "{path} is not a compiled module: its content is unknown"),
        (b"IRPA\0\0\0\0", "its content is IREE parameter archive (.irpa)"),
        (b"GGUF\3\0\0\0", "its content is GGUF archive"),
        (b"module {}", "{path} is MLIR text, which must be compiled first: pelton compile"),
        (b"ML\xefR\r", "{path} is MLIR bytecode, which must be compiled first: pelton compile"),
    ],
)
def test_file_of_another_kind_is_refused_by_its_content(
    tmp_path: Path, contents: bytes, message: str
) -> None:
    path = tmp_path / "m.vmfb"
    path.write_bytes(contents)
    assert message.format(path=path) in refusal(path)


def test_parameters_in_place_of_the_module_are_refused(compiled: Compiled) -> None:
    path = compiled("weighted").with_suffix(".irpa")
    assert refusal(path) == (
        f"{path} is not a compiled module: its content is IREE parameter archive (.irpa)"
    )


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "the module in memory is empty"),
        (b"hello", "the module in memory is not a compiled module: its content is unknown"),
        (b"module {}", "the module in memory is MLIR text, which must be compiled first"),
    ],
)
def test_wrong_bytes_are_named_without_a_path(contents: bytes, message: str) -> None:
    with pytest.raises(ArtifactError) as caught:
        runtime.load(contents)
    assert str(caught.value).startswith(message)


def test_missing_file_is_named(tmp_path: Path) -> None:
    assert refusal(tmp_path / "m.vmfb") == f"no such file: {tmp_path / 'm.vmfb'}"


def test_folder_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path} is a folder; give the path of a file"
