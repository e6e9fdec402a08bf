"""Refused connections in the log: whoever knocks a thousand times a second must not fill a disk."""

from __future__ import annotations

import asyncio
import logging

AT_MOST_EVERY_S = 5.0
SAME_AGAIN_S = 300.0
LENGTH_MAX = 500


class Complaints:
    """At most one line in AT_MOST_EVERY_S, the same again after SAME_AGAIN_S; the next one counts those left out."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._last = ""
        self._when = float("-inf")
        self._unsaid = 0

    def tell(self, address: object, why: str) -> None:
        """A connection with `address` is closed because of `why`, in which strangers' words may stand."""
        why = "".join(letter if letter.isprintable() else "?" for letter in why[:LENGTH_MAX])
        now = self._loop.time()
        if now - self._when < (SAME_AGAIN_S if why == self._last else AT_MOST_EVERY_S):
            self._unsaid += 1
            return
        more = f" (and {self._unsaid} others since the last line like this)" if self._unsaid else ""
        self._last, self._when, self._unsaid = why, now, 0
        self._log.warning("connection with %s closed: %s%s", address, why, more)
