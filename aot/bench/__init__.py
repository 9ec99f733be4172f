"""A program measured by several ways of running it, side by side."""

from .figure import save_figure
from .job import Job, Subject, example_inputs
from .report import Report, Row
from .session import Settings, measure
from .ways import way_names
from .worker import serve

__all__ = [
    "Job",
    "Report",
    "Row",
    "Settings",
    "Subject",
    "example_inputs",
    "measure",
    "save_figure",
    "serve",
    "way_names",
]
