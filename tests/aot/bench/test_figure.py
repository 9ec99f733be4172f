"""Figures of a benchmark: pictures and pages that show every runner, written whole or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pelton.aot.bench import Report, Row, save_figure
from pelton.aot.bench.figure import _cells, _conditions
from pelton.aot.spec.errors import ArtifactError


@pytest.fixture
def report() -> Report:
    rows = [
        Row("eager", seconds={"first call": 0.1}, milliseconds=[2.0, 2.0, 4.0], difference=0.0,
            is_right=True),
        Row("cpu", seconds={"capture": 0.5, "compile": 2.0, "first call": 0.1},
            milliseconds=[1.0, 1.0, 1.5], difference=1e-7, is_right=True),
        Row("cuda", "absent", "no CUDA device on this machine"),
        Row("inductor", "failed", "CompileError: <no> such thing " + 50 * "long "),
        Row("vulkan", "failed", "the process ended", milliseconds=[0.1]),
    ]  # fmt: skip
    return Report("zoo:<net>", ["2x4xf32"], {"threads": 1, "device": "cpu"}, rows)


def test_a_page_shows_every_runner_and_needs_no_other_file(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    page = save_figure(report, tmp_path / "a.html").read_text()
    for row in report.rows:
        assert f"<td>{row.runner}<td>" in page
    assert "no CUDA device" in page
    assert "&lt;no&gt; such thing" in page
    assert "<h1>zoo:&lt;net&gt;</h1>" in page
    assert 'src="data:image/png;base64,iVBOR' in page
    assert list(tmp_path.iterdir()) == [tmp_path / "a.html"]


@pytest.mark.parametrize(("name", "start"), [("a.PNG", b"\x89PNG"), ("a.svg", b"<?xml")])
def test_a_picture_is_of_the_kind_that_its_name_says(
    report: Report, tmp_path: Path, name: str, start: bytes
) -> None:
    pytest.importorskip("matplotlib")
    assert save_figure(report, tmp_path / name) == tmp_path / name
    assert (tmp_path / name).read_bytes().startswith(start)


def test_a_report_without_any_measurement_can_be_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report = Report("zoo:net", [], {}, [Row("cuda", "absent", "no CUDA device")])
    assert save_figure(report, tmp_path / "a.svg").stat().st_size > 0


def test_other_kinds_of_pictures_are_refused(report: Report, tmp_path: Path) -> None:
    for name in ("a.gif", "png", "a.png.gz"):
        with pytest.raises(ArtifactError, match=r"must end in \.png, \.svg or \.html"):
            save_figure(report, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_row_of_the_table_has_times_speed_and_difference(report: Report) -> None:
    eager, cpu, cuda, _, vulkan = (_cells(report, row) for row in report.rows)
    assert eager == ["eager", "2.000", "2.000", "3.600", "1.00", "500", "0.10", "0.0e+00"]
    assert cpu == ["cpu", "1.000", "1.000", "1.400", "2.00", "1000", "2.60", "1.0e-07"]
    assert cuda == ["cuda", "absent: no CUDA device on this machine", *[""] * 6]
    assert vulkan == ["vulkan", "failed: the process ended", *[""] * 6]


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"threads": 1, "device": "cpu"}, "1 thread on a CPU"),
        ({"threads": 4, "device": "cuda"}, "4 threads on a GPU"),
    ],
    ids=["cpu", "cuda"],
)
def test_the_conditions_name_threads_and_machine(settings: dict, text: str) -> None:
    report = Report("zoo:net", [], settings, [])
    report.machine.update({"processor": "a CPU", "gpu": "a GPU"})
    assert f"in turns, {text}; torch " in _conditions(report)
