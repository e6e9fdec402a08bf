"""Lines of Django's own loggers in programs that write the log themselves."""

from __future__ import annotations

import logging
import sys


def log_once() -> None:
    """Take Django's handler of standard error from its logger, if the root logger has one that writes its lines too.

    With DEBUG each line of `django.tasks` and the like would appear twice.
    """
    if any(_writes_to_stderr(handler) for handler in logging.getLogger().handlers):
        django = logging.getLogger("django")
        for handler in list(django.handlers):
            if django.propagate and _writes_to_stderr(handler):
                django.removeHandler(handler)


def _writes_to_stderr(handler: logging.Handler) -> bool:
    return isinstance(handler, logging.StreamHandler) and handler.stream is sys.stderr
