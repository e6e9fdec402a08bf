"""Refused attempts in the log: one line in a while, however many there are, so that nobody can fill it."""

from __future__ import annotations

import asyncio
import logging
import re

from gateway.limits import REFUSALS_LOG_S

log = logging.getLogger("sockpqd.gateway")

_STRANGE = re.compile(r"[^A-Za-z0-9_.:-]")


class Refusals:
    """Counts what is refused, and says it at once or when the time of the last line is over."""

    def __init__(self) -> None:
        self._count = 0
        self._last = ""
        self._timer: asyncio.TimerHandle | None = None

    def note(self, why: str, user: str | None, peer: str) -> None:
        """`user` wanted something that he may not have; None: nobody has said who it is."""
        self._count += 1
        self._last = f"{why}, user {_printable(user)}, from {peer}"
        if self._timer is None:
            self._say()

    def _say(self) -> None:
        self._timer = None
        if self._count:
            log.warning("refused: %s (%d since the last such line)", self._last, self._count)
            self._count = 0
            self._timer = asyncio.get_running_loop().call_later(REFUSALS_LOG_S, self._say)


def _printable(user: str | None) -> str:
    return "-" if user is None else _STRANGE.sub("?", user[:64])
