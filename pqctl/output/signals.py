"""Signals: to be ended from outside is no reason to leave a job, a file or a terminal as it is."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

NUMBERS = (signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """One of NUMBERS has come. As KeyboardInterrupt it passes all that handles errors."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number       # as a shell tells it


INTERRUPTIONS = KeyboardInterrupt, Ended


@contextmanager
def orderly() -> Iterator[None]:
    """Meanwhile they raise Ended, so that all that cleans up does so. Those that are ignored (nohup) stay so."""
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
    """Meanwhile SIGINT ends the process at once, without a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(number: int, _: FrameType | None) -> NoReturn:
    raise Ended(number)
