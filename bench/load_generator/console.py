"""Where the programs of this folder print."""

from __future__ import annotations

import sys

from rich.console import Console

WIDTH_WITHOUT_TERMINAL = 140        # what goes into a file or a pipe is not folded


def make_console() -> Console:
    """The standard output, without colours for numbers and without the program's line numbers in the log."""
    return Console(highlight=False, log_path=False, width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)
