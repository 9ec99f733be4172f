"""Frames of the Python interpreter."""

from __future__ import annotations

import sys
from types import FrameType


def calling_frame(depth: int = 0) -> FrameType:
    """Return the frame of the function that calls this, or of one of its callers.

    Args:
        depth: How many callers to go up; 0: the function itself.

    Example:
        >>> def name(): return calling_frame().f_code.co_name
        >>> name()
        'name'
    """
    return sys._getframe(depth + 1)
