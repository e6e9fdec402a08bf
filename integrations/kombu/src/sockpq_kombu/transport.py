"""The transport: a kombu connection, which is one client of sockpq with its threads."""

from __future__ import annotations

import math
import os
from contextlib import suppress
from importlib.metadata import version
from time import monotonic
from typing import Any

from kombu.log import get_logger
from kombu.transport import base, virtual
from sockpq import NotExecuted

from sockpq_kombu.background.event_loop import enter_event_loop, leave_event_loop
from sockpq_kombu.channels import channel
from sockpq_kombu.client import remember
from sockpq_kombu.link import Link
from sockpq_kombu.mapping.addresses import DEFAULT_PORT, access_of, own_server
from sockpq_kombu.mapping.errors import CONNECTION
from sockpq_kombu.mapping.queue_order import policy_of

logger = get_logger("kombu.transport.sockpq")

CONNECT_S = 2.5             # for a first answer; kombu and Celery try again themselves
TURN_S = 0.01               # deliveries of one turn of the event loop, before others have theirs


class Transport(virtual.Transport):
    """`sockpq://user:secret@host:11361/vhost`, with semicolons between several hosts."""

    Channel = channel.Channel
    channels: list[channel.Channel]
    default_port = DEFAULT_PORT
    polling_interval = None
    driver_type = "sockpq"
    driver_name = "sockpq"
    can_parse_url = False
    connection_errors = base.Transport.connection_errors + CONNECTION
    channel_errors = (*base.Transport.channel_errors, NotExecuted)
    recoverable_connection_errors = connection_errors
    recoverable_channel_errors = ()
    tls = False

    implements = virtual.Transport.implements.extend(
        asynchronous=True, exchange_type=frozenset(["direct", "topic", "fanout"]), heartbeats=False,
    )

    def __init__(self, client: Any, **kwargs: Any) -> None:
        """`client`: the kombu.Connection. Raises ValueError for a wrong option, before anything is connected."""
        super().__init__(client, **kwargs)
        policy_of(client.transport_options.get("queue_order_strategy"))
        self.link = Link(access_of(client, self.tls), client.transport_options)
        self._process = os.getpid()
        self._waker: tuple[int, int] | None = None      # a pipe, when an event loop listens
        self._loop: Any = None

    def driver_version(self) -> str:
        return version("sockpq")

    # the connection

    def establish_connection(self) -> Any:
        """Check that a leader serves. One of several URLs is accepted only if its own server answers."""
        if len(self.client.alt or ()) > 1:
            self.link.client.ping(own_server(self.client), timeout=1.0)
        self.link.client.connect(timeout=min(self.client.connect_timeout or CONNECT_S, CONNECT_S))
        remember(self.link.access, self.link.client)
        return super().establish_connection()

    def verify_connection(self, connection: Any) -> bool:
        """Do nothing: the client reconnects by itself."""
        return True

    def close_connection(self, connection: Any) -> None:
        """Close the connection; unacknowledged messages go back. In a forked child only descriptors are closed."""
        ours = self._process == os.getpid()
        if ours:
            self._unregister()
        super().close_connection(connection)
        self.link.close(said=ours)

    # deliveries without an event loop

    def drain_events(self, connection: Any, timeout: float | None = None) -> None:
        """Deliver received messages, or wait for one; raises socket.timeout."""
        until = None if timeout is None else monotonic() + timeout
        while not self._deliver():
            if not self.link.wait(None if until is None else max(until - monotonic(), 0.0)):
                raise TimeoutError

    def _deliver(self, seconds: float = math.inf) -> bool:
        """Deliver received messages, for at most this long; returns False if there was none.

        Messages of NOTIFY are delivered first, on any channel, even between two messages of queues: so a task that was
        revoked before it was sent is not started, however long the task before it takes, as in the solo pool. Raises
        the failure of the connection, if any.
        """
        self.link.clear_news()
        until = monotonic() + seconds
        some = False
        for one in list(self.channels):
            for _ in range(one.waiting()):
                some |= self._deliver_told()
                if one.closed or not one.deliver_one():
                    break
                some = True
                if monotonic() >= until:
                    self.link.notify()        # there may be more
                    return True
        return some

    def _deliver_told(self) -> bool:
        some = False
        for one in list(self.channels):
            while not one.closed and one.deliver_told():
                some = True
        return some

    # deliveries in an event loop

    def register_with_event_loop(self, connection: Any, loop: Any) -> None:
        """Let the loop call the transport from now on."""
        enter_event_loop()
        if self._waker is None:
            reader, writer = self._waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            self._loop = loop
            loop.add_reader(reader, self._on_news)
            self.link.wake_by(lambda: _wake(writer))
            _wake(writer)           # for what has come before

    def _on_news(self) -> None:
        if self._waker is not None:
            with suppress(BlockingIOError):
                os.read(self._waker[0], 4096)
            self._deliver(TURN_S)

    def _unregister(self) -> None:
        if self._waker is not None:
            leave_event_loop()
            self.link.wake_by(None)
            waker, self._waker = self._waker, None
            with suppress(Exception):       # the loop may have been emptied before
                self._loop.remove_reader(waker[0])
            for descriptor in waker:
                os.close(descriptor)


class TlsTransport(Transport):
    """`sockpqs://`: the same over TLS."""

    tls = True


def _wake(writer: int) -> None:
    with suppress(BlockingIOError):         # it is awake
        os.write(writer, b"\0")
