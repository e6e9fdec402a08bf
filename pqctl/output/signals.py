"""Signals: termination from outside raises an exception, so that jobs, files and terminals are cleaned up."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

NUMBERS = (signal.SIGTERM, signal.SIGHUP)


class EndedBySignal(BaseException):
    """One of NUMBERS was received. Like KeyboardInterrupt, it is not caught by error handlers."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number       # as in shells


INTERRUPTIONS = KeyboardInterrupt, EndedBySignal


@contextmanager
def orderly() -> Iterator[None]:
    """Let signals raise EndedBySignal in the block, so that cleanup code runs. Ignored ones (nohup) stay ignored."""
    before = {number: signal.getsignal(number) for number in NUMBERS}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def abrupt() -> Iterator[None]:
    """Within the block, SIGINT ends the process immediately, without a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(number: int, _: FrameType | None) -> NoReturn:
    raise EndedBySignal(number)
