"""The console on which benchmarks print."""

from __future__ import annotations

import sys

from rich.console import Console

WIDTH_WITHOUT_TERMINAL = 140        # so that lines in files and pipes are not wrapped


def make_console() -> Console:
    """A console on standard output, without colours for numbers and line numbers in the log."""
    return Console(highlight=False, log_path=False, width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)
