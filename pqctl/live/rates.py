"""The rates of arriving and leaving jobs per second, counted from events."""

from __future__ import annotations

import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from sockpq import ClientClosed, EventsLost, EventType, SockpqError

if TYPE_CHECKING:
    from sockpq import Events

MOVES: tuple[EventType, ...] = ("PUT", "TAKE", "DONE", "LATER", "EXPIRED")


class Rates:
    """Counts events in a thread of its own, so that a slow display delays none."""

    def __init__(self, events: Events) -> None:
        self.refusal: SockpqError | None = None     # why events no longer come
        self._events = events
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._since = time.monotonic()
        threading.Thread(target=self._listen, daemon=True).start()

    def take(self) -> dict[tuple[str, str], float]:
        """Return the number of events per second of each type in each queue since the last call."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
            now = time.monotonic()
            seconds, self._since = max(now - self._since, 0.001), now
        return {place: count / seconds for place, count in counts.items()}

    def _listen(self) -> None:
        while True:
            try:
                for event in self._events:
                    with self._lock:
                        self._counts[event.name, event.type] += 1
            except EventsLost:
                continue
            except ClientClosed:
                return
            except SockpqError as error:
                self.refusal = error        # the queues are shown without rates
                return
