"""Signals: termination from outside raises an exception, so that jobs, files and terminals are cleaned up."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import NoReturn

NUMBERS = (signal.SIGTERM, signal.SIGHUP)
AGAIN_S = 0.01


class EndedBySignal(BaseException):
    """One of NUMBERS was received. Like KeyboardInterrupt, it is not caught by error handlers."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.exit_code = 128 + number       # as in shells


INTERRUPTIONS = KeyboardInterrupt, EndedBySignal


@contextmanager
def orderly() -> Iterator[None]:
    """Let signals raise EndedBySignal in the block, so that cleanup code runs. Ignored ones (nohup) stay ignored.

    Python drops what is raised while a destructor or a callback of a weak reference runs: then the signal is repeated.
    """
    before = {number: signal.getsignal(number) for number in NUMBERS}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:
            signal.signal(number, _end)
    dropped, sys.unraisablehook = sys.unraisablehook, _repeat_or(sys.unraisablehook)
    try:
        yield
    finally:
        sys.unraisablehook = dropped
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


def _repeat_or(otherwise: Callable[[sys.UnraisableHookArgs], object]) -> Callable[[sys.UnraisableHookArgs], object]:
    """Return a hook that sends a signal again if its exception was dropped, and passes on all other exceptions."""
    def hook(dropped: sys.UnraisableHookArgs) -> None:
        if not isinstance(dropped.exc_value, INTERRUPTIONS):
            otherwise(dropped)
            return
        number = dropped.exc_value.args[0] if isinstance(dropped.exc_value, EndedBySignal) else signal.SIGINT
        # From another thread: here it would be raised in the hook, and dropped for good.
        threading.Thread(target=_send_behind, args=(hook.__code__, number), daemon=True).start()
    return hook


def _send_behind(code: CodeType, number: int) -> None:
    """Send a signal once the main thread no longer executes this code, however long a busy machine delays it."""
    main = threading.main_thread().ident
    while True:
        time.sleep(AGAIN_S)
        frame = sys._current_frames().get(main or 0)
        while frame is not None and frame.f_code is not code:
            frame = frame.f_back
        if frame is None:
            os.kill(os.getpid(), number)
            return
