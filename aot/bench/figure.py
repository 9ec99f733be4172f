"""Figures of a benchmark: a PNG or SVG plot, or an HTML page."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pelton.runtime.files import StrPath, atomic_write

from ..spec.errors import ArtifactError, MissingDependencyError
from .report import FAILED, MEASURED, Report, Row

_COLORS = {
    "eager": "#9aa5b1",
    "inductor": "#5c7cba",
    "torch.compile": "#5c7cba",
    "onnxruntime": "#6b9e78",
}
_OWN_COLOR = "#d9480f"
_STAGES = {"capture": "#f2c14e", "compile": "#d9480f", "first call": "#5c7cba"}


def save_figure(report: Report, path: StrPath) -> Path:
    """Draw a report: the time of a call and the cold start, a bar for each runner.

    Args:
        report: What was measured.
        path: A `.png` or `.svg` figure, or an `.html` page with the figure and the table.

    Returns:
        The path.

    Raises:
        ArtifactError: The name ends otherwise, or the file cannot be written.
        MissingDependencyError: matplotlib is not installed.
    """
    path = Path(path)
    kind = path.suffix.lstrip(".").lower()
    if kind not in ("png", "svg", "html"):
        raise ArtifactError(f"cannot draw {path}: the name must end in .png, .svg or .html")
    data = _drawn(report, "png" if kind == "html" else kind)
    with atomic_write(path) as file:
        file.write(_page(report, data).encode() if kind == "html" else data)
    return path


def _drawn(report: Report, kind: str) -> bytes:
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingDependencyError(
            "figures need matplotlib: pip install 'pelton[bench]'"
        ) from error
    style: Any = {"font.size": 14, "axes.spines.top": False, "axes.spines.right": False}
    with rc_context(style):
        figure = Figure(figsize=(12.8, 7.2), layout="constrained")
        calls, cold = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        rows = list(reversed(report.rows))
        _draw_calls(calls, report, rows)
        _draw_cold(cold, rows)
        layout: Any = figure.get_layout_engine()
        layout.set(w_pad=0.2, h_pad=0.15)
        figure.suptitle(f"{report.program}: {', '.join(report.inputs)}", fontsize=20)
        figure.supxlabel(_conditions(report), fontsize=11, color="#666666")
        target = io.BytesIO()
        figure.savefig(target, format=kind, dpi=150)
    return target.getvalue()


def _draw_calls(axes: Any, report: Report, rows: Sequence[Row]) -> None:
    """Draw the median of each runner with its 10th to 90th percentile."""
    axes.set_title("one call (ms), lower is better", fontweight="bold", loc="left")
    axes.set_yticks(range(len(rows)), [row.runner for row in rows])
    longest = max((row.percentile(90) for row in report.measured), default=1.0)
    axes.set_xlim(0, longest * 1.45)
    for place, row in enumerate(rows):
        if row.status == MEASURED:
            low, middle, high = (row.percentile(percent) for percent in (10, 50, 90))
            axes.barh(
                place, middle, 0.62, color=_COLORS.get(row.runner, _OWN_COLOR),
                xerr=[[middle - low], [high - middle]], error_kw={"ecolor": "#333333"},
            )  # fmt: skip
            speed = report.speed_of(row)
            text = f"{middle:.2f} ms" + (
                f"  {speed:.2f}x" if speed and row.runner != "eager" else ""
            )
            axes.text(high + longest * 0.02, place, text, va="center")
        else:
            color = "#c92a2a" if row.status == FAILED else "#666666"
            text = f"{row.status}: {row.reason}"
            axes.text(longest * 0.02, place, _short(text), va="center", color=color, fontsize=11)


def _draw_cold(axes: Any, rows: Sequence[Row]) -> None:
    """Draw the stages of the cold start, one after another."""
    axes.set_title("cold start (s)", fontweight="bold", loc="left")
    for stage, color in _STAGES.items():
        starts = [_before(row, stage) for row in rows]
        lengths = [row.seconds.get(stage, 0.0) for row in rows]
        axes.barh(range(len(rows)), lengths, 0.62, left=starts, color=color, label=stage)
    longest = max((sum(row.seconds.values()) for row in rows), default=1.0) or 1.0
    axes.set_xlim(0, longest * 1.2)
    for place, row in enumerate(rows):
        if row.seconds:
            whole = sum(row.seconds.values())
            axes.text(whole + longest * 0.02, place, f"{whole:.2f} s", va="center")
    axes.legend(loc="upper right", frameon=False, fontsize=12)


def _before(row: Row, stage: str) -> float:
    names = list(_STAGES)
    return sum(row.seconds.get(name, 0.0) for name in names[: names.index(stage)])


def _short(text: str) -> str:
    return text if len(text) <= 64 else text[:63] + "…"


def _conditions(report: Report) -> str:
    machine, settings = report.machine, report.settings
    place = machine.get("gpu") if settings.get("device") == "cuda" else machine.get("processor")
    threads = settings.get("threads", "?")
    return (
        f"median; lines: 10th to 90th percentile; x: as fast as eager; in turns, {threads} thread"
        f"{'' if threads == 1 else 's'} on {place}; torch {machine.get('torch')}"
    )


_HEADINGS = (
    "",
    "median ms",
    "p10 ms",
    "p90 ms",
    "speed",
    "calls/s",
    "cold start s",
    "difference",
)


def _page(report: Report, picture: bytes) -> str:
    """Return a page that needs no other file."""
    title = html.escape(report.program)
    rows = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}' for cell in _cells(report, row))}"
                   for row in report.rows)  # fmt: skip
    headings = "".join(f"<th>{heading}" for heading in _HEADINGS)
    style = (
        "body{font:16px system-ui,sans-serif;margin:2rem auto;max-width:1100px;color:#222}"
        "img{width:100%}table{border-collapse:collapse;width:100%}"
        "td,th{padding:.4rem .8rem;text-align:right;border-bottom:1px solid #ddd}"
        "td:first-child{text-align:left;font-weight:600}"
    )
    encoded = base64.b64encode(picture).decode()
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{title}</title>"
        f"<style>{style}</style><h1>{title}</h1>"
        f'<img alt="times of the runners" src="data:image/png;base64,{encoded}">'
        f"<table><tr>{headings}{rows}</table>"
        f"<p>{html.escape(_conditions(report))}</p></html>\n"
    )


def _cells(report: Report, row: Row) -> list[str]:
    if row.status != MEASURED:
        return [row.runner, f"{row.status}: {row.reason}", *[""] * (len(_HEADINGS) - 2)]
    times = [f"{row.percentile(percent):.3f}" for percent in (50, 10, 90)]
    speed = report.speed_of(row)
    difference = "" if row.difference is None else f"{row.difference:.1e}"
    rest = [f"{speed:.2f}" if speed else "", f"{row.calls_per_second:.0f}"]
    return [row.runner, *times, *rest, f"{sum(row.seconds.values()):.2f}", difference]
