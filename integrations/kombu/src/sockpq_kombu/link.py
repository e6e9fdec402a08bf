"""Shared by the channels of one connection: the client, its threads, and the known queues."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from kombu.log import get_logger
from sockpq import (
    Aborted,
    BadArguments,
    CrossCluster,
    ForeignCluster,
    NotSupported,
    QueueExists,
    QueueSettings,
    SockpqError,
)

from sockpq_kombu.background.acknowledgements import Acknowledgements
from sockpq_kombu.background.event_loop import must_not_block
from sockpq_kombu.background.outbox import Outbox
from sockpq_kombu.client import client_of
from sockpq_kombu.mapping.addresses import Access
from sockpq_kombu.mapping.errors import LOST, errors_of_kombu
from sockpq_kombu.transient.local_queues import LocalQueue
from sockpq_kombu.transient.notices import Notices

logger = get_logger("kombu.transport.sockpq")

FLUSH_S = 30.0                          # how long the end of a connection waits for what was not sent yet
TRANSIENT = "celeryev", "*.pidbox"      # Celery's events and remote control

T = TypeVar("T")


class Link:
    """The client of a connection, for any number of threads. Only `call` waits in an event loop's thread."""

    def __init__(self, access: Access, options: dict[str, Any]) -> None:
        """`access`: servers, user and TLS, from the URL; `options`: kombu's transport_options."""
        self.access = access
        self.client = client_of(access, options)
        self.pending: dict[str, QueueSettings] = {}      # declared, and perhaps never needed on the server
        self.local_queues: dict[str, LocalQueue] = {}
        self.notices = Notices(self.client)
        self._outbox = Outbox("sockpq outbox", self._send_failed)
        self._later: deque[Callable[[], Any]] = deque()     # of the outbox, without acknowledgements
        self.acknowledgements = Acknowledgements(self.client, self._outbox, self._acknowledged)
        self._watchers: list[Callable[[], None]] = []
        self._transient = *TRANSIENT, *options.get("transient_exchanges", ())
        self._headers = True        # the servers know headers of jobs, as far as known
        self._failure: Exception | None = None
        self._news = threading.Condition()
        self._has_news = False
        self._wake: Callable[[], None] | None = None

    # calls to the server

    def send(self, call: Callable[[], Any]) -> None:
        """Make this call now, or soon if in an event loop, where a refusal is only logged.

        It is made after all earlier calls, but not necessarily after earlier acknowledgements of DONE.
        """
        if must_not_block():
            self._later.append(call)
            self._outbox.call(self._send_next)
            return
        self._send_earlier()
        with errors_of_kombu():
            call()

    def _send_earlier(self) -> None:
        if self._later or self.acknowledgements.unsent_visible:
            self.flush()

    def call(self, question: Callable[[], T]) -> T:
        """Make this call after all earlier ones, and wait for the answer in any thread."""
        self.flush()
        with errors_of_kombu():
            return question()

    def commit(self, commands: Sequence[Callable[[Any], object]]) -> None:
        """Execute the commands that `commands` add to a transaction, after all earlier calls: all, or none (Aborted).

        If they concern queues of several clusters, they are executed one by one, in order.
        """
        self._send_earlier()
        try:
            self._commit(commands)
        except (Aborted, NotSupported) as error:
            if not self._headers or (isinstance(error, Aborted) and not isinstance(error.reason, BadArguments)):
                raise
            self._headers = False       # which is what an old server refuses
            self._commit(commands)

    def _commit(self, commands: Sequence[Callable[[Any], object]]) -> None:
        if len(commands) == 1:          # a transaction would only take longer
            commands[0](self.client)
            return
        try:
            with self.client.transaction() as transaction:
                for add in commands:
                    add(transaction)
        except CrossCluster:
            for add in commands:
                add(self.client)

    def end(self, call: Callable[[], Any]) -> None:
        """Make this call after all earlier ones, even if they failed."""
        if must_not_block():
            self._outbox.call(call)
        else:
            self.flush()
            call()

    def _send_next(self) -> None:
        try:
            self._later[0]()
        finally:
            self._later.popleft()

    def _send_failed(self, error: SockpqError) -> None:
        logger.error("a message sent from an event loop was not accepted by the server: %s", error)
        if isinstance(error, LOST):
            self.fail(error)

    def flush(self) -> None:
        """Wait until the threads have sent everything."""
        if not self._outbox.flush(FLUSH_S):
            logger.warning("%d acknowledgements or messages could not be sent in time", len(self._outbox))

    def watch(self, poll: Callable[[], None]) -> None:
        """Set a callback that is called, in another thread, when acknowledgements have reached the server."""
        self._watchers.append(poll)

    def unwatch(self, poll: Callable[[], None]) -> None:
        self._watchers.remove(poll)

    def _acknowledged(self) -> None:
        for poll in list(self._watchers):
            poll()

    # fallbacks for older servers

    def with_headers(self, headers: dict[str, str] | None, put: Callable[[dict[str, str] | None], T]) -> T:
        """Put a message with these headers of its job, or without them if the servers do not support headers."""
        if headers and self._headers:
            try:
                return put(headers)
            except NotSupported:
                self._headers = False
        return put(None)

    def shown(self, headers: dict[str, str] | None) -> dict[str, str] | None:
        """Return these headers, or None if the servers are known not to support headers."""
        return headers if self._headers else None

    def make_queue(self, name: str, settings: QueueSettings) -> None:
        """Make a queue, or give it these settings. Its messages have numbers, by which revoke() removes them."""
        numbered: QueueSettings = {**settings, "numbered": True}
        try:
            try:
                self.client.queue_create(name, **numbered)
            except NotSupported:
                self.client.queue_create(name, **settings)
        except QueueExists:
            if self.client.queue_config(name).get("numbered") == "0":
                settings = numbered
            if settings:
                self.client.queue_config(name, **settings)

    # queues of this program

    def is_transient(self, exchange: str) -> bool:
        """Return whether this exchange only reaches current listeners."""
        return any(fnmatchcase(exchange, pattern) for pattern in self._transient)

    def local_queue(self, queue: str) -> LocalQueue:
        """The local queue of this program with this name."""
        return self.local_queues.setdefault(queue, LocalQueue(self.notify))

    # news for the program

    def notify(self) -> None:
        """Record that there may be messages to deliver. Called from any thread."""
        with self._news:
            first, self._has_news = not self._has_news, True
            self._news.notify_all()
            if first and self._wake is not None:
                self._wake()

    def fail(self, error: Exception) -> None:
        """Raise the loss of the connection in the program, where it waits for messages."""
        self._failure = error.__cause__ if isinstance(error.__cause__, ForeignCluster) else error
        self.notify()

    def clear_news(self) -> None:
        """Record that everything received so far is being processed. Raises the connection's failure, if any."""
        with self._news:
            self._has_news = False
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def wait(self, seconds: float | None) -> bool:
        """Wait for news; returns False if there were none in time."""
        with self._news:
            return self._news.wait_for(lambda: self._has_news, seconds)

    def wake_by(self, wake: Callable[[], None] | None) -> None:
        """Set another callback for news; it must not block."""
        with self._news:
            self._wake = wake

    # the end

    def close(self, said: bool) -> None:
        """Close the client; without `said`, as in a forked child, nothing is sent to the servers."""
        if said:
            for local in list(self.local_queues.values()):
                local.close()
            self.flush()
            self.notices.flush()
        self.local_queues.clear()
        self.client.close()
