"""Writes the reasons that clients give for the ends of jobs to the node's log: a few per second; others are counted.

A reason is a few bytes of a command that can be sent in endless number, and its line is four times as long.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sockpqd.gateway.limits import REASONS_LOGGED_MAX, REASONS_OF_ONE_LOGGED_MAX

log = logging.getLogger("sockpqd.gateway")


class ReasonLog:
    """Logs the reasons of all clients of this node."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._second = 0
        self._lines = 0                         # logged in this second,
        self._of_one: dict[str, int] = {}       # and by whom
        self._left_out = 0                      # since that was last logged

    def note(self, peer: str, text: str) -> None:
        """Log what this client gives as a reason, unless there are too many of them in this second."""
        second = int(self._monotonic())
        if second != self._second:
            self._second, self._lines = second, 0
            self._of_one.clear()
            if self._left_out:
                log.warning("%d reasons of clients were not logged: too many came in a second", self._left_out)
                self._left_out = 0
        of_one = self._of_one.get(peer, 0)
        if of_one >= REASONS_OF_ONE_LOGGED_MAX or self._lines >= REASONS_LOGGED_MAX:
            self._left_out += 1
            return
        self._of_one[peer] = of_one + 1
        self._lines += 1
        log.info("%s: %s", peer, text)
