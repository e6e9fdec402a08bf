"""Sends commands to the server in the background: in order, by a thread that exists while there are any."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from kombu.log import get_logger
from sockpq import SockpqError

logger = get_logger("kombu.transport.sockpq")

IDLE_S = 10.0           # the thread ends when it had nothing to say for this long

Send = Callable[[list[Any]], None]


class Outbox:
    """Commands that wait to be sent, and the thread that sends them. Any thread may add some.

    The thread is started with the first item, so a fork before that does no harm.
    """

    def __init__(self, name: str, failed: Callable[[SockpqError], None]) -> None:
        """`name`: the name of the thread; `failed`: called in it with the exception that an item has raised."""
        self._name = name
        self._failed = failed
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Send, Any]] = deque()
        self._busy = False
        self._thread: threading.Thread | None = None

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, send: Send, *items: Any) -> None:
        """Call `send` soon with a list of these items, and of those added for it directly after."""
        with self._changed:
            self._waiting.extend((send, item) for item in items)
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def call(self, call: Callable[[], Any]) -> None:
        self.add(lambda items: call(), None)

    def flush(self, seconds: float) -> bool:
        """Wait up to `seconds` until everything is sent; returns whether it is."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting, IDLE_S):
                    self._thread = None
                    return
                send = self._waiting[0][0]
                items = []
                while self._waiting and self._waiting[0][0] == send:
                    items.append(self._waiting.popleft()[1])
                self._busy = True
            try:
                send(items)
            except SockpqError as error:
                self._failed(error)
            except Exception:
                logger.exception("%s: %d items were not sent", self._name, len(items))
            finally:
                with self._changed:
                    self._busy = False
                    self._changed.notify_all()
