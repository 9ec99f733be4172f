"""Packages (`.trtm`): the public path of `artifacts.trtm`."""

from .artifacts.trtm import Package, open_trtm, write_trtm

__all__ = ["Package", "open_trtm", "write_trtm"]
