"""Takes jobs from one channel's queues, as many as it has room for, in a thread that blocks while there are none."""

from __future__ import annotations

import threading
from collections.abc import Callable

from sockpq import Client, Job, SockpqError

from sockpq_kombu.mapping.queue_order import QueuePolicy

TOGETHER_MAX = 100      # jobs at once where the channel has no prefetch limit
JOIN_S = 5.0
WITHDRAW_S = 5.0        # what the end of a GETB may take; without a leader it takes longer


class Fetcher:
    """One GETB at a time. The jobs belong to a session, which a thread of the library keeps alive."""

    def __init__(
        self, client: Client, ttl: float, policy: QueuePolicy | None, wanted: Callable[[], tuple[int, tuple[str, ...]]],
        came: Callable[[list[Job]], None], failed: Callable[[Exception], None],
    ) -> None:
        """`wanted`: returns the number of jobs to fetch, and their queues; `came` and `failed` are called in the
        thread.

        `ttl`: the jobs go back when this process has been silent for this many seconds; `policy`: the choice of the
        next queue.
        """
        self._consumer = client.consumer(ttl)
        self._policy = policy
        self._wanted = wanted
        self._came = came
        self._failed = failed
        self._changed = threading.Condition()
        self._asking: tuple[int, tuple[str, ...]] | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="sockpq fetcher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def poll(self) -> None:
        """Fetch more if there is room, or if the queues have changed. Never blocks for longer than a send."""
        with self._changed:
            asking = self._asking
            self._changed.notify_all()
            if asking is not None:
                room, queues = self._wanted()
                if queues != asking[1] or room < asking[0]:
                    self._consumer.wake()

    def withdraw(self, queue: str) -> None:
        """Wait until no job of this queue, which is no longer wanted, is in flight."""
        with self._changed:
            self._changed.wait_for(lambda: self._asking is None or queue not in self._asking[1], WITHDRAW_S)

    def stop(self) -> None:
        """Stop fetching; jobs that were not ended go back to their places."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        self._consumer.wake()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(JOIN_S)
        self._consumer.close()

    def _run(self) -> None:
        try:
            while (asking := self._next()) is not None:
                jobs = self._consumer.get_many(*asking, meta=True, policy=self._policy)
                if jobs:
                    self._came(jobs)
        except SockpqError as error:
            with self._changed:
                self._asking = None
                self._changed.notify_all()
            if not self._stopped:
                self._failed(error)

    def _next(self) -> tuple[int, tuple[str, ...]] | None:
        """Wait for room; return the number of jobs to request next, and their queues. None: fetching was stopped."""
        with self._changed:
            self._asking = None
            self._changed.notify_all()
            while not self._stopped:
                room, queues = self._wanted()
                if room and queues:
                    self._asking = min(room, TOGETHER_MAX), queues
                    return self._asking
                self._changed.wait()
        return None
