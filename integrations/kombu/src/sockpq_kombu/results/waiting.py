"""Waiting for results without polling: the worker notifies the program that sent the task."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from celery.backends.asynchronous import BaseResultConsumer
from celery.result import GroupResult
from kombu.log import get_logger
from sockpq import EventsLost, SockpqError, Unavailable

logger = get_logger("celery.backends.sockpq")

ASK_S = 5.0         # what was missed, as by a waiter in another thread than the sender, is asked for at this interval
LOOK_S = 1.0        # the least time between two looks at the tasks before the one that is waited for, and the time that
LOOK_RATIO = 20.0   # they are apart at least, as a multiple of what a look takes


class ResultConsumer(BaseResultConsumer):
    """Receives the results of this program's tasks."""

    backend: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._restart()

    def _restart(self) -> None:
        self._came: deque[bytes] = deque()
        self._news = threading.Condition()
        self._listening: dict[str, Any] = {}
        self._waiting: set[str] = set()
        self._asked_at = monotonic()

    def on_after_fork(self) -> None:
        """Forget the parent's subscriptions in a child process."""
        self._restart()

    def start(self, initial_task_id: str, **kwargs: Any) -> None:
        """Start to wait for this task."""
        self.consume_from(initial_task_id)

    def consume_from(self, task_id: str) -> None:
        """Wait for this task, which the calling thread has usually sent."""
        self._waiting.add(task_id)
        waiter = self.app.thread_oid
        if waiter not in self._listening:
            events = self.backend.client.events("MSG", self.backend.store.channel(waiter))
            self._listening[waiter] = events
            events.open()
            threading.Thread(target=self._listen, args=(events,), name="sockpq results", daemon=True).start()

    def cancel_for(self, task_id: str) -> None:
        """Stop waiting for this task. May be called by the garbage collector, so it does not block."""
        self._waiting.discard(task_id)

    def stop(self) -> None:
        for events in list(self._listening.values()):
            events.stop()
        self._listening.clear()

    def drain_events(self, timeout: float | None = None) -> None:
        """Process received results, waiting for them at most `timeout` seconds."""
        with self._news:
            until_ask = max(self._asked_at + ASK_S - monotonic(), 0.0)
            self._news.wait_for(lambda: self._came, min(1.0 if timeout is None else timeout, until_ask))
        while self._came:
            self._take(self._came.popleft())
        if monotonic() >= self._asked_at + ASK_S:
            self.ask()

    def ask(self) -> None:
        """Read the results of all tasks that are awaited, as a notice may be lost."""
        self._asked_at = monotonic()
        for task_id in list(self._waiting):
            meta = self.backend.get(self.backend.get_key_for_task(task_id))
            if meta:
                self._take(meta)

    def on_wait_for_pending(self, result: Any, **kwargs: Any) -> None:
        """Read results that may exist already."""
        for meta in result._iter_meta(**kwargs):
            if meta is not None:
                self.on_state_change(meta, None)

    def _wait_for_pending(self, result: Any, on_interval: Any = None, **kwargs: Any) -> Iterator[None]:
        """Wait as Celery does. A group after a failed task never begins, so its waiters get that task's error."""
        looked_at: float | None = None
        spaced = None if on_interval is None else Spaced(on_interval)
        for _ in super()._wait_for_pending(result, on_interval=spaced, **kwargs):
            if isinstance(result, GroupResult) and self._asked_at != looked_at:
                looked_at = self._asked_at
                for ancestor in _ancestors(result):
                    ancestor.maybe_throw()
            yield

    def on_state_change(self, meta: dict[str, Any], message: Any) -> None:
        """Handle a new state of a task."""
        super().on_state_change(meta, message)
        if meta["status"] in self.backend.READY_STATES:
            self.cancel_for(meta["task_id"])

    def _take(self, encoded: bytes) -> None:
        self.on_state_change(self.backend.decode_result(encoded), None)

    def _listen(self, events: Any) -> None:
        while True:
            try:
                for event in events:
                    with self._news:
                        self._came.append(event.data)
                        self._news.notify_all()
                return
            except EventsLost:
                self._asked_at = 0.0        # some may have been missed
            except Unavailable as error:
                logger.warning("no notifications of results for now: %s", error)
            except SockpqError as error:
                logger.error("no more notifications of results, which are polled every %g s: %s", ASK_S, error)
                return


class Spaced:
    """Makes a call less often the longer it takes: Celery checks all earlier tasks for errors at each message.

    For a chord of a thousand parts that is a thousand requests, while the chord itself reports the error of a part.
    """

    def __init__(self, call: Callable[[], object], clock: Callable[[], float] = monotonic) -> None:
        self._call = call
        self._clock = clock
        self._due = clock() + LOOK_S

    def __call__(self) -> None:
        begun = self._clock()
        if begun < self._due:
            return
        self._call()
        ended = self._clock()
        self._due = ended + max(LOOK_S, LOOK_RATIO * (ended - begun))


def _ancestors(result: Any) -> list[Any]:
    """Return the earlier tasks and groups, the oldest first."""
    found: list[Any] = []
    while (result := result.parent) is not None:
        found.insert(0, result)
    return found
