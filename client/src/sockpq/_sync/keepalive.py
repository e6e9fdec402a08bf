"""Keeping a session alive: a thread says PING, every third of the session's TTL."""

from __future__ import annotations

import threading

from sockpq._backends.sync import run
from sockpq._streaming.bound_sessions import BoundSessions


class KeepAlive:
    """Keeps one session alive."""

    def __init__(self, session: BoundSessions) -> None:
        self._session = session
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, if that was not done."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="sockpq keepalive", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread, which may still be waiting for an answer."""
        self._stopped.set()

    def _beat(self) -> None:
        while not self._stopped.wait(self._session.period):
            run(self._session.beat())
