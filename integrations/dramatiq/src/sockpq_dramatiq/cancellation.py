"""Stops actors whose message was removed from the cluster while this worker had it."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

from dramatiq.logging import get_logger
from dramatiq.middleware.threading import Interrupt, is_gevent_active, raise_thread_exception
from sockpq import Client, ClientClosed, Events, EventsLost, SockpqError

from sockpq_dramatiq.messages import ReceivedMessage

logger = get_logger(__name__)

OPEN_S = 5.0            # how long a worker that starts searches for a server that tells events
PAUSE_S = 5.0           # after an error, before the events are asked for again


class Abort(Interrupt):
    """Raised in an actor whose message was cancelled. The actor may clean up; nothing else happens to the message.

    Like Dramatiq's other interrupts, it reaches the actor when it next executes Python code, not during a system call.
    """


class Cancellations:
    """Listens for the removal of jobs that a worker has; each process has one subscription."""

    def __init__(self, client: Client, names: str | None) -> None:
        """`names`: the queues whose events are needed: a prefix with `*`, or None for all."""
        self._client = client
        self._names = names
        self._lock = threading.Lock()
        self._held: dict[int, ReceivedMessage] = {}
        self._running: dict[int, Any] = {}      # thread, or greenlet, of each message whose actor runs
        self._workers = 0
        self._events: Events | None = None

    def start(self) -> None:
        """Listen as long as a worker of this process runs; from the return on, before any message is taken."""
        with self._lock:
            self._workers += 1
            if self._events is not None:
                return
            events = self._events = self._client.events("CANCEL", self._names, timeout=OPEN_S)
        with suppress(SockpqError):         # the thread tries again
            events.open()
        threading.Thread(target=self._listen, args=(events,), daemon=True, name="sockpq cancel").start()

    def stop(self) -> None:
        """Stop listening, if this was the last worker."""
        with self._lock:
            self._workers = max(self._workers - 1, 0)
            events = None if self._workers else self._events
            if events is not None:
                self._events = None
        if events is not None:
            events.stop()

    def taken(self, message: ReceivedMessage) -> None:
        """Record that this worker has the message."""
        with self._lock:
            self._held[message.job.id] = message

    def ended(self, message: ReceivedMessage) -> None:
        """Record that this worker no longer has the message."""
        with self._lock:
            self._held.pop(message.job.id, None)

    def begin(self, message: ReceivedMessage) -> None:
        """Record that the actor of the message runs in this thread."""
        with self._lock:
            self._running[message.job.id] = _this_thread()

    def finish(self, message: ReceivedMessage) -> None:
        """Record that the actor has ended, so that nothing interrupts the thread."""
        try:
            with self._lock:
                self._running.pop(message.job.id, None)
        except Abort:           # it came in the moment before
            self._running.pop(message.job.id, None)

    def _listen(self, events: Events) -> None:
        while self._events is events:
            try:
                for event in events:
                    if event.id is not None:
                        self._cancel(event.id)
            except EventsLost:
                pass            # a message that was cancelled meanwhile runs to its end, which changes nothing
            except ClientClosed:
                return
            except SockpqError as error:
                logger.info("Cancelled messages are not noticed at present: %s", error)
                threading.Event().wait(PAUSE_S)

    def _cancel(self, job_id: int) -> None:
        with self._lock:
            message = self._held.get(job_id)
            if message is None:
                return
            message.cancelled = True
            logger.info("Message %s was cancelled.", message.message_id)
            if job_id in self._running:
                _interrupt(self._running[job_id])


if is_gevent_active():
    from gevent import getcurrent

    def _this_thread() -> Any:
        return getcurrent()

    def _interrupt(thread: Any) -> None:
        thread.kill(Abort, block=False)

else:

    def _this_thread() -> Any:
        return threading.get_ident()

    def _interrupt(thread: Any) -> None:
        raise_thread_exception(thread, Abort)
