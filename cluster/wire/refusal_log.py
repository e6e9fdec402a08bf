"""Refused attempts in the log: whoever knocks a thousand times a second must neither fill a disk nor go unseen."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

AT_MOST_EVERY_S = 5.0
SAME_AGAIN_S = 300.0
LENGTH_MAX = 500


class Complaints:
    """At most one line in AT_MOST_EVERY_S, the same again after SAME_AGAIN_S, with the number of those before it.

    What had to wait is told when its time has come, also when nobody knocks any more: the last attempts of a burst are
    not lost.
    """

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._said = ""                                 # the reason in the last line
        self._when = float("-inf")                      # time of the loop
        self._held: tuple[Any, str] | None = None       # address and reason of the next line
        self._count = 0                                 # attempts since the last line
        self._timer: asyncio.TimerHandle | None = None

    def tell(self, address: Any, why: str) -> None:
        """`address` was refused because of `why`, in which strangers' words may stand."""
        why = "".join(letter if letter.isprintable() else "?" for letter in why[:LENGTH_MAX])
        self._count += 1
        if self._held is None or why != self._said:
            self._held = address, why
        loop = asyncio.get_running_loop()
        due = self._when + (SAME_AGAIN_S if self._held[1] == self._said else AT_MOST_EVERY_S)
        if due <= loop.time():
            self._say(loop)
        elif self._timer is None or due < self._timer.when():
            self._stop_timer()
            self._timer = loop.call_at(due, self._say, loop)

    def _say(self, loop: asyncio.AbstractEventLoop) -> None:
        assert self._held is not None
        (address, why), others = self._held, self._count - 1
        self._stop_timer()
        self._held, self._count = None, 0
        self._said, self._when = why, loop.time()
        more = f" (and {others} others since the last such line)" if others else ""
        self._log.warning("refused: %s: %s%s", _written(address), why, more)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _written(address: Any) -> str:
    """An address as asyncio gives it, or what stands for one."""
    if not isinstance(address, tuple):
        return "somebody who has gone" if address is None else str(address)
    host, number = address[:2]
    return f"[{host}]:{number}" if ":" in host else f"{host}:{number}"
