"""Fixtures for tests of log lines: a pipe in place of stderr, and the logging of the process as it was before."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from sockpqd.gateway import audit


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for end in (read, write):
        with suppress(OSError):
            os.close(end)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Restore what Logs.start() changes, after the test."""
    root = logging.getLogger()
    handlers, level, hooks = root.handlers[:], root.level, (sys.excepthook, threading.excepthook)
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    sys.excepthook, threading.excepthook = hooks
    audit.log.handlers[:] = []
    audit.log.setLevel(logging.NOTSET)
    audit.log.propagate = True
