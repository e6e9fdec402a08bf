"""The handler that writes the log of `pqworker` to standard error, and of programs that write beside it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

from sockpq.errors import BadArguments
from sockpq.worker.failures import JsonLines, TextLines
from sockpq.worker.program.options import parse


def log_handler(form: str) -> logging.StreamHandler[Any]:
    """Return a handler for standard error. `form`: of its lines, "json", "text", or "auto": text on a terminal."""
    handler: logging.StreamHandler[Any] = logging.StreamHandler()
    as_text = sys.stderr.isatty() if form == "auto" else form == "text"
    handler.setFormatter(TextLines(_wants_colours()) if as_text else JsonLines())
    return handler


def log_format_of(arguments: Sequence[str]) -> str:
    """Return the form of the log that these arguments of `pqworker` ask for, or the file that they name.

    "auto" if they are not valid: `pqworker` says what is wrong with them, and ends.
    """
    try:
        return str(parse(arguments).get("log-format", "auto"))
    except BadArguments:
        return "auto"


def _wants_colours() -> bool:
    """Return whether standard error is a terminal with colours, and NO_COLOR is unset (https://no-color.org)."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb"
