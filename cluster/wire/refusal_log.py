"""Rate-limits log lines about refused connections without dropping the last one."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

AT_MOST_EVERY_S = 5.0
SAME_AGAIN_S = 300.0
LENGTH_MAX = 500


class RefusalLog:
    """Writes at most one line per AT_MOST_EVERY_S, and the same reason again only after SAME_AGAIN_S.

    A line has the number of refusals since the one before. The last refusal of a burst is logged when that time has
    passed, even if no other one follows.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._last_reason = ""                                 # reason in the last line
        self._written_at = float("-inf")                      # when that was written, by the loop's clock
        self._next: tuple[Any, str] | None = None       # address and reason of the next line
        self._count = 0                                 # refusals since the last line
        self._timer: asyncio.TimerHandle | None = None

    def refused(self, address: Any, why: str) -> None:
        """Log that `address` was refused; `why` may contain text from the other side."""
        why = "".join(letter if letter.isprintable() else "?" for letter in why[:LENGTH_MAX])
        self._count += 1
        if self._next is None or why != self._last_reason:
            self._next = address, why
        loop = asyncio.get_running_loop()
        due = self._written_at + (SAME_AGAIN_S if self._next[1] == self._last_reason else AT_MOST_EVERY_S)
        if due <= loop.time():
            self._write(loop)
        elif self._timer is None or due < self._timer.when():
            self._stop_timer()
            self._timer = loop.call_at(due, self._write, loop)

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._next is not None
        (address, why), others = self._next, self._count - 1
        self._stop_timer()
        self._next, self._count = None, 0
        self._last_reason, self._written_at = why, loop.time()
        more = f" (and {others} others since the last such line)" if others else ""
        self._log.warning("refused: %s: %s%s", _text(address), why, more)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _text(address: Any) -> str:
    """The text for an address as asyncio gives it; None: the connection is closed already."""
    if not isinstance(address, tuple):
        return "somebody who has gone" if address is None else str(address)
    host, number = address[:2]
    return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"
