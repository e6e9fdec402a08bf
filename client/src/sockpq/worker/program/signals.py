"""The signals of the worker program."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

LOG = logging.getLogger("sockpq.worker")


class Stoppable(Protocol):
    """The pool that signals stop."""

    def stop(self) -> None:
        """Finish running jobs, give back the others, and end."""
        ...

    def halt(self) -> None:
        """Stop at once; running jobs go back."""
        ...


@contextmanager
def abrupt() -> Iterator[None]:
    """Within the block, SIGINT ends the process immediately until there are handlers, as while the app is imported.

    Python's own handler raises KeyboardInterrupt, which is dropped while a destructor runs: the worker would continue.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Signals:
    """TERM and INT: stop; a second one, or QUIT: stop now; HUP: read the configuration again."""

    def __init__(self, pool: Stoppable, reload: Callable[[], None]) -> None:
        self._pool = pool
        self._reload = reload
        self._stopping = False

    def install(self) -> None:
        """Install the handlers in the running event loop."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        loop.add_signal_handler(signal.SIGQUIT, self._halt)
        loop.add_signal_handler(signal.SIGHUP, self._reload)

    def _stop(self) -> None:
        if self._stopping:
            self._halt()
            return
        self._stopping = True
        LOG.info("stopping: what runs is finished, the rest goes back")
        self._pool.stop()

    def _halt(self) -> None:
        self._stopping = True
        LOG.warning("stopping at once: all jobs go back")
        self._pool.halt()
