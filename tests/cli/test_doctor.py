import importlib.metadata

import pytest

from pelton.cli import doctor, main
from pelton.cli.doctor import Requirement, requirements, satisfies

Capture = pytest.CaptureFixture[str]


def test_what_is_needed_is_there(capsys: Capture) -> None:
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "iree-base-compiler" in text and importlib.metadata.version("torch") in text
    assert "All that is needed is there." in text


@pytest.mark.parametrize(
    ("stated", "status", "remedy"),
    [
        ("no-such-package>=1", 1, "pip install 'no-such-package>=1'"),
        ("numpy>=99", 1, "pip install 'numpy>=99'"),
        ('no-such-package; extra == "rtx"', 0, "pip install 'pelton[rtx]'"),
        ('no-such-package; extra == "dev"', 0, ""),
    ],
)
def test_what_is_missing_comes_with_its_command(
    stated: str, status: int, remedy: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: [stated])
    assert main(["doctor"]) == status
    assert remedy in capsys.readouterr().out


def test_a_package_of_several_extras_is_one_requirement() -> None:
    stated = ['onnx>=1.18; extra == "rtx"', 'onnx>=1.18; extra == "tensorrt"', "onnxscript"]
    assert requirements(stated) == [
        Requirement("onnx", ">=1.18", ("rtx", "tensorrt")),
        Requirement("onnxscript", ""),
    ]


@pytest.mark.parametrize(
    ("version", "bounds", "expected"),
    [
        ("3.13.0", ">=3.13,<3.14", True),
        ("3.14.0rc1", ">=3.13,<3.14", False),
        ("2.9.1+cpu", ">=2.10", False),
        ("2.13.0+cpu", "<3,>=2.10", True),
        ("1.0", "", True),
    ],
)
def test_bounds_of_versions(version: str, bounds: str, expected: bool) -> None:
    assert satisfies(version, bounds) is expected
