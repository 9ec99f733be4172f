"""What holds for all tests."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Let processes that tests start be interrupted, as a shell's background jobs are not."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
