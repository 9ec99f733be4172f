"""Benchmarks: one program measured with several runners, side by side."""

from .figure import save_figure
from .job import Job, Subject, example_inputs
from .report import Report, Row
from .runners import runner_names
from .session import Settings, measure
from .worker import serve

__all__ = [
    "Job",
    "Report",
    "Row",
    "Settings",
    "Subject",
    "example_inputs",
    "measure",
    "runner_names",
    "save_figure",
    "serve",
]
