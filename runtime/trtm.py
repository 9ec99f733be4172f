"""Public path of the reader and writer of `.trtm` packages; they live in `artifacts.trtm`."""

from .artifacts.trtm import Package, open_trtm, write_trtm

__all__ = ["Package", "open_trtm", "write_trtm"]
