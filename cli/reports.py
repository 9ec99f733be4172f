"""The report of `pelton compile --dry-run`: what a target takes, and what it does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.filesize import decimal
from rich.markup import escape
from rich.table import Table

from .terminal import results_console

if TYPE_CHECKING:
    from pelton.aot.targets import FunctionReport


def print_reports(reports: Sequence[FunctionReport]) -> None:
    """Print a table for each entry point."""
    console = results_console()
    for report in reports:
        verdict = "[green]taken[/]" if report.supported else "[red]not taken[/]"
        console.print(f"[bold]{escape(report.name)}[/]: {verdict}")
        table = Table("operator", "count", "why not", box=box.SIMPLE_HEAD)
        reasons = {refusal.operator: refusal for refusal in report.refusals}
        for refusal in report.refusals:
            place = f"{refusal.location}: " if refusal.location else ""
            count = report.operators.get(refusal.operator)
            why = f"[red]{escape(place + refusal.reason)}[/]"
            table.add_row(escape(refusal.operator), str(count or ""), why)
        for operator, count in report.operators.items():
            if operator not in reasons:
                table.add_row(escape(operator), str(count), "")
        console.print(table)
        for profile in report.profiles:
            console.print(f"  profile {escape(profile)}")
        if report.layers is not None:
            console.print(f"  {report.layers} layers before fusion")
        if report.memory_bytes:
            listed = ", ".join(f"{what} {decimal(n)}" for what, n in report.memory_bytes.items())
            console.print(f"  memory at the largest sizes: {listed}")


def report_to_json(report: FunctionReport) -> dict[str, Any]:
    """Return a report in types that JSON has."""
    return {
        "name": report.name,
        "supported": report.supported,
        "operators": dict(report.operators),
        "refusals": [
            {
                "operator": refusal.operator,
                "reason": refusal.reason,
                "location": str(refusal.location) if refusal.location else None,
            }
            for refusal in report.refusals
        ],
        "layers": report.layers,
        "profiles": list(report.profiles),
        "memory_bytes": dict(report.memory_bytes),
    }
